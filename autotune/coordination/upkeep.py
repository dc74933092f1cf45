"""Delete, rename and reset studies, and remove their run folders.

A folder belongs to a run if the job status in it is the stored one: other studies of the same name may have runs beside
it. A study that was merged or copied into this storage owns no folder, because the original storage may need them.
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
from autotune.storage.address import hide_password, place
from autotune.storage.studies import StoredStudies
from autotune.storage.study_lock import StudyLock, study_holder
from autotune.storage.study_store import StudyStore, study_names


@dataclass(frozen=True)
class Removable:
    """The run folders of a study that may be removed.

    Attributes:
        folders: The folders.
        size_bytes: Their total size.
        kept: Number of further folders, which stay.
        elsewhere: The place of the other storage that owns the folders; empty if this one does.
    """

    folders: tuple[Path, ...] = ()
    size_bytes: int = 0
    kept: int = 0
    elsewhere: str = ""


@contextmanager
def hold_unused(url: str, name: str, what: str) -> Iterator[tuple[StudyStore, StudyLock]]:
    """Lock a study that no other process uses; `what` names the operation in messages.

    Renew the lock after a question to the user: on a server it is lost after three minutes of sleep.

    Raises:
        BusyError: A process works on the study, or it has jobs in a queue.
        StorageError: There is no such study.
    """
    store = StudyStore.read(url, name)
    holder = study_holder(url, name)
    if holder is not None:
        msg = f"study {name!r} is being worked on by {holder}: stop that first, since only an idle study can be {what}"
        raise BusyError(msg)
    with StudyLock.hold(url, name) as lock:
        # Leases of programs that ask for runs have no job; they expire by themselves.
        leases = store.leases().all()
        jobs = sum(lease.job_id is not None and bool(lease.record.get("scheduler")) for lease in leases)
        if jobs:
            count = "1 job" if jobs == 1 else f"{jobs} jobs"
            cancel = f"use `autotune cancel {name}` first"
            msg = f"study {name!r} has {count} in a queue, so it cannot be {what}: {cancel}"
            raise BusyError(msg)
        yield store, lock


def find_removable(store: StudyStore, stays: Callable[[Path, Run], bool] = lambda _folder, _run: False) -> Removable:
    """Return the folders of stored runs, except those for which `stays` is true."""
    if not _is_at_home(store):
        return Removable(elsewhere=store.home)
    folders, kept, size = [], 0, 0
    for folder, run in _runs_with_folders(store.runs()):
        if stays(folder, run):
            kept += 1
            continue
        folders.append(folder)
        size += _size(folder)
    return Removable(tuple(folders), size, kept)


def remove(found: Removable) -> None:
    """Remove run folders as a whole, because a partly removed folder could be read as a run's."""
    for folder in found.folders:
        with suppress(OSError):
            discard(folder)
    sweep_discarded(*{folder.parent for folder in found.folders})


def delete(store: StudyStore, found: Removable) -> None:
    """Delete a study that is held, its checkpoints and its run folders, and the parent folder if it is then empty.

    The study is deleted first, so that a study is never left without its outputs.
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
            # The files that a session writes before its runs; those of another study, if that has runs here.
            shutil.rmtree(runs / "plan", ignore_errors=True)
            if other_holder(runs / RUNS_LOCK) is None:
                (runs / RUNS_LOCK).unlink(missing_ok=True)
        for empty in (checkpoints.parent, runs):
            with suppress(OSError):
                empty.rmdir()


def reset(store: StudyStore, found: Removable) -> None:
    """Remove everything that was measured of a held study; its name and study file stay."""
    definition, url, name = store.definition, store.url, store.name
    delete(store, found)
    StudyStore.create(url, name, definition)


def rename(store: StudyStore, new: str) -> Path | None:
    """Rename a study that is held; return the new parent of its run folders, or None if they stay where they are.

    Raises:
        StorageError: A study of that name exists.
        BusyError: Another process uses that name.
    """
    url, old = store.url, store.name
    if new in study_names(url):
        address = hide_password(url)
        msg = f"there is a study {new!r} in {address} already; give another name, or `autotune storage delete {new}`"
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


def _runs_with_folders(runs: Iterable[Run]) -> Iterator[tuple[Path, Run]]:
    for run in runs:
        folder = Path(run.job.get("folder") or "")
        # A symbolic link was made by the user, who keeps the folder elsewhere, so it is not removed.
        if folder.is_absolute() and not folder.is_symlink() and is_folder_of(folder, run.outcome.usage):
            yield folder, run


def _all_owned(around: Path, runs: Iterable[Run]) -> bool:
    """Whether every folder with a job status belongs to one of the `runs`, and none to another study."""
    own = {folder for folder, _ in _runs_with_folders(runs)}
    return all(folder in own for folder in _run_folders(around))


def _run_folders(around: Path) -> Iterator[Path]:
    """Yield the folders with a job status."""
    for folder in around.iterdir() if around.is_dir() else ():
        if not folder.is_symlink() and folder.is_dir() and is_folder_of(folder, None):
            yield folder


def _size(folder: Path) -> int:
    with suppress(OSError):
        return sum(entry.lstat().st_size for entry in folder.rglob("*") if not entry.is_dir())
    return 0
