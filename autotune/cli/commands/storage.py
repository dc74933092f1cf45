"""`autotune storage`: what a storage holds."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from autotune.cli.common import output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.storage.address import shown, storage_url

if TYPE_CHECKING:
    from autotune.storage.contents import Contents


def storage(storage: Storage = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """Show what a storage holds."""
    from autotune.storage.contents import contents
    from autotune.storage.tables import VERSION

    url = storage_url(storage)
    stored = contents(url)
    if as_json:
        print_json({"storage": shown(url), "known_version": VERSION, **asdict(stored)})
    else:
        output().print(_text(url, stored, VERSION), markup=False)


def _text(url: str, contents: "Contents", known: int) -> str:
    others = f", and {contents.others} of other programs" if contents.others else ""
    version = (
        "nothing was stored yet" if contents.version is None else f"{contents.version} (this autotune writes {known})"
    )
    lines = (
        f"storage {shown(url)}",
        f"kind: {contents.kind}, {contents.size_bytes / 1e6:.1f} MB",
        f"version: {version}" + (f", Optuna's tables: {contents.optuna}" if contents.optuna else ""),
        f"studies: {contents.studies}{others}",
        f"trials: {contents.trials}, runs: {contents.runs}, imported measurements: {contents.imported}",
    )
    return "\n".join(lines)
