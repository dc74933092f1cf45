"""Results that a storage did not take: each is kept in its run's folder, for the next session to store.

A list beside the folders says which have one, so that nobody has to look into all of them.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from autotune.files import replace_file
from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.storage.readable import stored_run
from autotune.storage.study_store import StudyStore

RESULT_FILE = ".autotune-result.json"
LIST_FILE = ".autotune-results-to-store"


def keep(mark: str, runs: Iterable[Run], say: Callable[[str], None]) -> None:
    """Keep runs that ended, and that the storage of the study with this `mark` did not take, in their folders."""
    for run in runs:
        folder = Path(run.job.get("folder") or "")
        if not folder.is_absolute():
            continue  # another program made it, and tells of it once more
        place = {"study": mark, "trial": run.trial, "series": str(run.series), "round": run.round}
        try:
            replace_file(folder / RESULT_FILE, json.dumps(place | {"record": run.to_dict()}))
            with (folder.parent / LIST_FILE).open("a", encoding="utf-8") as file:
                file.write(f"{folder.name}\n")
                file.flush()
                os.fsync(file.fileno())
            say(f"run {folder.name}: its result is kept in {folder}, and stored by the same command")
        except OSError as error:
            say(f"run {folder.name}: its result is lost: {folder} cannot be written to: {error.strerror}")


def store_kept(folder: Path, store: StudyStore, say: Callable[[str], None]) -> None:
    """Store the results that earlier sessions kept in the `folder` of runs: each once, also if this ends midway.

    Raises:
        StorageError: the storage does not take them now either; they are still kept.
    """
    listed = _listed(folder)
    kept = {name: run for name in listed if (run := _kept(folder / name / RESULT_FILE, store.mark)) is not None}
    if kept:
        _store(kept, store, say)
    for name in kept:
        (folder / name / RESULT_FILE).unlink(missing_ok=True)
    _shorten(folder)


def _store(kept: Mapping[str, Run], store: StudyStore, say: Callable[[str], None]) -> None:
    # Trials may be others by now: somebody may have restored the storage from a backup and gone on.
    configurations: Mapping[int | None, object] = {trial.number: dict(trial.configuration) for trial in store.trials()}
    there = {_part(run) for run in store.runs()}
    missing = []
    for name, run in kept.items():
        if run.series.is_tuning and configurations.get(run.trial) != dict(run.configuration):
            say(f"run {name}: its result is dropped: trial {run.trial} is another one in this storage, or not there")
        elif _part(run) is None or _part(run) not in there:
            missing.append(run)
    store.add_runs(missing)
    if missing:
        what, verb = ("1 result", "is") if len(missing) == 1 else (f"{len(missing)} results", "are")
        say(f"{what} that could not be stored before {verb} stored now")


def _shorten(folder: Path) -> None:
    """Leave in the list only what still has a result; read anew: another session may keep one at this moment."""
    path = folder / LIST_FILE
    if not path.exists():
        return
    left = [name for name in _listed(folder) if (folder / name / RESULT_FILE).exists()]
    with suppress(OSError):
        if left:
            replace_file(path, "".join(f"{name}\n" for name in left))
        else:
            path.unlink()


def _listed(folder: Path) -> list[str]:
    with suppress(OSError):
        names = (folder / LIST_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
        return [name for name in dict.fromkeys(names) if name and Path(name).name == name]
    return []


def _kept(path: Path, mark: str) -> Run | None:
    """Return the result in a file; None if it is not there, or of another study of the same name."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(path.read_bytes())
        if kept["study"] == mark:
            return stored_run(kept["record"], kept["trial"], kept["series"], kept["round"])
    return None


def _part(run: Run) -> tuple[object, ...] | None:
    """Return which part of a comparison, or of a training, a run is: another session may have made it meanwhile.

    None for any other run of tuning: each is one measurement more.
    """
    if run.series.kind is SeriesKind.ASIDE or (run.series.is_tuning and run.steps is None):
        return None
    return (run.trial, str(run.series), run.round, run.steps, json.dumps(dict(run.configuration), sort_keys=True))
