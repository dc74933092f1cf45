"""Results that a storage could not take: kept in their run folders, until the next session stores them.

A list beside the folders names those with a kept result, so that not every folder must be searched.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from autotune.files import replace_file
from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.storage.readable_study import stored_run
from autotune.storage.study_store import StudyStore

RESULT_FILE = ".autotune-result.json"
LIST_FILE = ".autotune-results-to-store"


def keep_results(mark: str, runs: Iterable[Run], say: Callable[[str], None]) -> None:
    """Keep ended runs in their folders, because the storage of the study with this `mark` did not take them."""
    for run in runs:
        folder = Path(run.job.get("folder") or "")
        if not folder.is_absolute():
            continue  # the program that made it will report it again
        place = {"study": mark, "trial": run.trial, "series": str(run.series), "round": run.round}
        try:
            replace_file(folder / RESULT_FILE, json.dumps(place | {"record": run.to_dict()}))
            with (folder.parent / LIST_FILE).open("a", encoding="utf-8") as file:
                file.write(f"\n{folder.name}\n")  # a full disk may have cut the last name
                file.flush()
                os.fsync(file.fileno())
            say(f"run {folder.name}: its result is kept in {folder}; use the same command again to store it")
        except OSError as error:
            say(f"run {folder.name}: its result is lost, because {folder} cannot be written: {error.strerror}")


def store_kept_results(folder: Path, store: StudyStore, say: Callable[[str], None]) -> None:
    """Store the results that earlier sessions kept in the `folder` of runs, each once, even if this is interrupted.

    Raises:
        StorageError: The storage still does not take them; they stay in their folders.
    """
    listed = _list_names(folder)
    kept = {name: run for name in listed if (run := _read_result(folder / name / RESULT_FILE, store.mark)) is not None}
    if kept:
        _store(kept, store, say)
    for name in kept:
        (folder / name / RESULT_FILE).unlink(missing_ok=True)
    _shorten(folder)


def _store(kept: Mapping[str, Run], store: StudyStore, say: Callable[[str], None]) -> None:
    # The trials may have changed: a storage restored from a backup may have been used since.
    configurations: Mapping[int | None, object] = {trial.number: dict(trial.configuration) for trial in store.trials()}
    there = {_comparison_key(run) for run in store.runs()}
    missing = []
    for name, run in kept.items():
        if run.series.is_tuning and configurations.get(run.trial) != dict(run.configuration):
            say(f"run {name}: its result is dropped: trial {run.trial} differs in this storage, or is missing")
        elif _comparison_key(run) is None or _comparison_key(run) not in there:
            missing.append(run)
    store.add_runs(missing)
    if missing:
        what, verb = ("1 result", "is") if len(missing) == 1 else (f"{len(missing)} results", "are")
        say(f"{what} that could not be stored before {verb} stored now")


def _shorten(folder: Path) -> None:
    """Remove names without a kept result from the list, read again because a session may have added one."""
    path = folder / LIST_FILE
    if not path.exists():
        return
    left = [name for name in _list_names(folder) if (folder / name / RESULT_FILE).exists()]
    with suppress(OSError):
        if left:
            replace_file(path, "".join(f"{name}\n" for name in left))
        else:
            path.unlink()


def _list_names(folder: Path) -> list[str]:
    with suppress(OSError):
        names = (folder / LIST_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
        return [name for name in dict.fromkeys(names) if name and Path(name).name == name]
    return []


def _read_result(path: Path, mark: str) -> Run | None:
    """Return the result in a file; None if it is missing, or belongs to another study of the same name."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(path.read_bytes())
        if kept["study"] == mark:
            return stored_run(kept["record"], kept["trial"], kept["series"], kept["round"])
    return None


def _comparison_key(run: Run) -> tuple[object, ...] | None:
    """Return what identifies a run of a comparison or of a training, which another session may have made meanwhile.

    None for any other run of tuning, because each of these is one more measurement.
    """
    if run.series.kind is SeriesKind.ASIDE or (run.series.is_tuning and run.steps is None):
        return None
    return (run.trial, str(run.series), run.round, run.steps, json.dumps(dict(run.configuration), sort_keys=True))
