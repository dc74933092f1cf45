"""`autotune runs --prune`: folders of runs are removed that are older than their study keeps them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from autotune.cli.common import output, print_json
from autotune.cli.removal import ask, count_text, folders_text
from autotune.durations import parse_duration_s
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.coordination.upkeep import Removable
    from autotune.storage.study_store import StudyStore


@dataclass(frozen=True)
class Pruning:
    """What was typed beside `--prune`."""

    older_than: str | None
    whole: bool
    dry_run: bool
    yes: bool


def pruned(name: str, storage: str, typed: Pruning, *, as_json: bool) -> None:
    """Remove old folders of a study's runs, when the user has agreed, and say how many and how large they were."""
    from autotune.coordination.upkeep import remove, unused
    from autotune.tuning.retention import outdated

    given_s = None if typed.older_than is None else _duration_s(typed.older_than)
    with unused(storage_url(storage), name, "pruned") as store:
        older_than_s = _age_s(store) if given_s is None else given_s
        found = outdated(store, older_than_s, whole=typed.whole)
        left = 0
        if found.folders and not typed.dry_run:
            ask(f"remove {folders_text(found)}?", yes=typed.yes)
            remove(found)
            left = sum(folder.exists() for folder in found.folders)
    if as_json:
        print_json(
            {
                "study": name,
                "dry_run": typed.dry_run,
                "older_than_s": older_than_s,
                "folders": len(found.folders),
                "bytes": found.size_bytes,
                "kept": found.kept,
                "not_removable": left,
            }
        )
    else:
        output().print(_sentence(name, found, left, dry_run=typed.dry_run), markup=False)


def _sentence(name: str, found: "Removable", left: int, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    stay = "stays" if found.kept == 1 else "stay"
    kept = f"; {count_text(found.kept)} {stay}" if found.kept else ""
    failed = f"; {left} of them could not be removed: look at their permissions" if left else ""
    return f"study {name!r}: {folders_text(found)} {would}removed{kept}{failed}"


def _duration_s(text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--older-than") from error


def _age_s(store: "StudyStore") -> float:
    from autotune.tuning.retention import kept_s

    age_s = kept_s(store.definition)
    if age_s is None:
        msg = (
            f"study {store.name!r} keeps the folders of its runs for ever: say an age here (--older-than 30d), or "
            "write keep_days = 30 under [runs] in its study file, which holds from the next session on"
        )
        raise typer.BadParameter(msg, param_hint="--prune")
    return age_s
