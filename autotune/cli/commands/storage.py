"""`autotune storage`: what a storage holds, and bringing older tables up to date."""

from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.storage.address import shown, storage_url

if TYPE_CHECKING:
    from autotune.storage.contents import Contents


class Action(StrEnum):
    """What can be done to a storage."""

    UPGRADE = "upgrade"


def storage(
    action: Annotated[
        Action | None,
        typer.Argument(help="upgrade: bring the tables of an older autotune or Optuna up to date; a copy is kept."),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Show what a storage holds, or upgrade it."""
    from autotune.storage.contents import contents
    from autotune.storage.tables import VERSION
    from autotune.storage.versions.upgrade import upgrade

    url = storage_url(storage)
    if action is None:
        stored = contents(url)
        if as_json:
            print_json({"storage": shown(url), "known_version": VERSION, **asdict(stored)})
        else:
            output().print(_text(url, stored, VERSION), markup=False)
        return
    done = upgrade(url)
    if as_json:
        print_json({"storage": shown(url), "version": VERSION, "upgrade": None if done is None else asdict(done)})
    else:
        said = f"storage {shown(url)} is up to date" if done is None else done.sentence(url)
        output().print(said, markup=False)


def _text(url: str, contents: "Contents", known: int) -> str:
    others = f", and {contents.others} of other programs" if contents.others else ""
    version = (
        "nothing was stored yet" if contents.version is None else f"{contents.version} (this autotune writes {known})"
    )
    lines = [
        f"storage {shown(url)}",
        f"kind: {contents.kind}, {contents.size_bytes / 1e6:.1f} MB",
        f"version: {version}" + (f", Optuna's tables: {contents.optuna}" if contents.optuna else ""),
        f"studies: {contents.studies}{others}",
        f"trials: {contents.trials}, runs: {contents.runs}, imported measurements: {contents.imported}",
    ]
    if contents.outdated:
        lines.append(f"older: {'; '.join(contents.outdated)}: `autotune storage upgrade` brings that up to date")
    return "\n".join(lines)
