"""Upkeep: studies are deleted, renamed and reset, and the folders of their runs removed.

A folder is a run's own if the status that its job left there is that of the run in storage: other studies of the same
name may keep their runs beside it. Of a study that came by a merge, or in a copy of the storage, no folder is: the
storage where it was made may still need them.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.coordination.session_settings import RUNS_LOCK, default_runs
from autotune.errors import BusyError, StorageError
from autotune.execution.run_folder import is_folder_of
from autotune.files import discard, sweep_discarded
from autotune.locks import other_holder
from autotune.records.study import Run
from autotune.scheduling.checkpoints import Checkpoints
from autotune.storage.address import place, shown
from autotune.storage.studies import StoredStudies
from autotune.storage.study_lock import StudyLock, study_holder
from autotune.storage.study_store import StudyStore, study_names


@dataclass(frozen=True)
class Removable:
    """The folders of a study's runs that may be removed: how many, and how large they are."""

    folders: tuple[Path, ...] = ()
    size_bytes: int = 0
    kept: int = 0
    """How many more there are, which stay."""
    elsewhere: str = ""
    """The place of the storage that they belong to, if it is another one."""


@contextmanager
def unused(url: str, name: str, what: str) -> Iterator[StudyStore]:
    """Hold a study on which nobody works; `what` is to be done with it.

    Raises:
        BusyError: somebody works on it, or jobs of it are in a queue.
        StorageError: there is no such study.
    """
    store = StudyStore.read(url, name)
    holder = study_holder(url, name)
    if holder is not None:
        msg = f"study {name!r} is being worked on by {holder}: it is {what} only when nobody does; stop that first"
        raise BusyError(msg)
    with StudyLock.hold(url, name):
        # Of the leases that asking programs have there is no job: they run out by themselves.
        leases = store.leases().all()
        jobs = sum(lease.job_id is not None and bool(lease.record.get("scheduler")) for lease in leases)
        if jobs:
            count = "1 job" if jobs == 1 else f"{jobs} jobs"
            cancel = f"use `autotune cancel {name}` first"
            msg = f"study {name!r} has {count} in a queue, and is {what} only without: {cancel}"
            raise BusyError(msg)
        yield store


def removable(store: StudyStore, stays: Callable[[Path, Run], bool] = lambda _folder, _run: False) -> Removable:
    """Return the folders of runs that are stored, but of those that `stays` names."""
    if not _is_at_home(store):
        return Removable(elsewhere=store.home)
    folders, kept, size = [], 0, 0
    for folder, run in _owned(store.runs()):
        if stays(folder, run):
            kept += 1
            continue
        folders.append(folder)
        size += _size(folder)
    return Removable(tuple(folders), size, kept)


def remove(found: Removable) -> None:
    """Remove folders of runs, each as a whole: one of which a part is left is not read as if it were the run's."""
    for folder in found.folders:
        with suppress(OSError):
            discard(folder)
    sweep_discarded(*{folder.parent for folder in found.folders})


def delete(store: StudyStore, found: Removable) -> None:
    """Delete a study that is held, its checkpoints, and the folders of its runs; then the folder around them, if empty.

    The study goes first: whatever happens, no study is left without its outputs.
    """
    around = {folder.parent for folder in found.folders} | {default_runs(store.url, store.name).absolute()}
    mark = store.mark
    StoredStudies(store.url).remove(store.name)
    if found.elsewhere:
        return
    remove(found)
    for runs in around:
        checkpoints = Checkpoints(runs, mark).folder(0).parent
        shutil.rmtree(checkpoints, ignore_errors=True)
        if next(_run_folders(runs), None) is None:
            # What a session makes before its runs: that of another study, if one has runs here.
            shutil.rmtree(runs / "plan", ignore_errors=True)
            if other_holder(runs / RUNS_LOCK) is None:
                (runs / RUNS_LOCK).unlink(missing_ok=True)
        for empty in (checkpoints.parent, runs):
            with suppress(OSError):
                empty.rmdir()


def reset(store: StudyStore, found: Removable) -> None:
    """Forget what was measured of a study that is held; its name and its study file stay."""
    definition, url, name = store.definition, store.url, store.name
    delete(store, found)
    StudyStore.create(url, name, definition)


def rename(store: StudyStore, new: str) -> Path | None:
    """Give a study that is held another name; return where its runs lie then, None if they stay where they are.

    Raises:
        StorageError: there is a study of that name.
        BusyError: somebody uses that name.
    """
    url, old = store.url, store.name
    if new in study_names(url):
        msg = f"there is a study {new!r} in {shown(url)} already; give another name, or `autotune storage delete {new}`"
        raise StorageError(msg)
    before, after = default_runs(url, old).absolute(), default_runs(url, new).absolute()
    with StudyLock.hold(url, new):
        moves = _is_at_home(store) and before.is_dir() and not after.exists() and _all_owned(before, store.runs())
        if moves:
            before.rename(after)
        try:
            StoredStudies(url).rename(old, new, (before, after) if moves else None)
        except BaseException:
            if moves:
                after.rename(before)
            raise
    return after if moves else None


def _is_at_home(store: StudyStore) -> bool:
    return store.home == place(store.url)


def _owned(runs: Iterable[Run]) -> Iterator[tuple[Path, Run]]:
    for run in runs:
        folder = Path(run.job.get("folder") or "")
        # The link of somebody who keeps the folder elsewhere is not ours to remove.
        if folder.is_absolute() and not folder.is_symlink() and is_folder_of(folder, run.outcome.usage):
            yield folder, run


def _all_owned(around: Path, runs: Iterable[Run]) -> bool:
    """Whether no other study has runs in a folder: each with the status of a job is of one of the `runs`."""
    own = {folder for folder, _ in _owned(runs)}
    return all(folder in own for folder in _run_folders(around))


def _run_folders(around: Path) -> Iterator[Path]:
    """Return the folders with the status of a job."""
    for folder in around.iterdir() if around.is_dir() else ():
        if not folder.is_symlink() and folder.is_dir() and is_folder_of(folder, None):
            yield folder


def _size(folder: Path) -> int:
    with suppress(OSError):
        return sum(entry.lstat().st_size for entry in folder.rglob("*") if not entry.is_dir())
    return 0
