"""Cancelling: no job of a study is left in any queue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from autotune.company import Company, new_holder, shown
from autotune.errors import BusyError, CannotRunHereError
from autotune.leased import Leased
from autotune.lock import IfHeld, StudyLock
from autotune.search.store import StudyStore
from autotune.storage_url import lock_path, sqlite_path
from launchers import LaunchError
from launchers.batch import BatchLauncher
from launchers.schedulers.catalogue import SCHEDULERS
from launchers.site import Site

_POLL_S = 1.0


def cancel_jobs(url: str, name: str, say: Callable[[str], None]) -> list[str]:
    """End the jobs of a study, and who works on it: they would only submit others. Return what was cancelled.

    Raises:
        BusyError: somebody works on the study who cannot be asked to stop from here.
        StorageError: there is no such study.
        CannotRunHereError: the scheduler cannot be reached.
    """
    StudyStore.read(url, name)  # one that is not there must not become one
    alone = sqlite_path(url) is not None
    with _held(url, name, say) if alone else nullcontext():
        return _cancel(StudyStore.read(url, name, read_only=False), alone=alone)


@contextmanager
def _held(url: str, name: str, say: Callable[[str], None]) -> Iterator[None]:
    lock = StudyLock.acquire(lock_path(url, name), name, IfHeld.TAKE_OVER, say)
    try:
        yield
    finally:
        lock.release()


def _cancel(store: StudyStore, *, alone: bool) -> list[str]:
    holder = new_holder()
    company = Company(store.leases(holder), holder, alone)
    company.look()
    if company.others:
        who = ", ".join(sorted(shown(other) for other in company.others))
        msg = f"study {store.name!r} is being worked on by {who}: stop that first (Ctrl-C there, or kill), then cancel"
        raise BusyError(msg)
    cancelled = []
    for lease in company.inherit():
        leased = Leased.from_dict(lease.record)
        if leased.scheduler:
            launcher = BatchLauncher(SCHEDULERS[leased.scheduler], Site(leased.scheduler, poll_s=_POLL_S))
            job_id = lease.job_id or launcher.submitted(Path(leased.job["folder"]))
            if job_id is not None:
                _end(launcher, job_id)
                cancelled.append(job_id)
        company.release(lease.place)
    return cancelled


def _end(launcher: BatchLauncher, job_id: str) -> None:
    try:
        launcher.cancel(job_id)
    except LaunchError as error:
        msg = f"{error}; use the same command again when the scheduler answers"
        raise CannotRunHereError(msg) from error
