"""Cancelling: no job of a study is left in any queue."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path

from autotune.company import Company, new_holder, shown
from autotune.errors import BusyError, CannotRunHereError
from autotune.leased import Leased
from autotune.lock import IfHeld, StudyLock
from autotune.search.store import StudyStore
from autotune.storage_url import lock_path, sqlite_path
from launchers import JobState, LaunchError
from launchers.batch import BatchLauncher
from launchers.schedulers.catalogue import SCHEDULERS
from launchers.site import Site

_POLL_S = 1.0
# Somebody waits for the answer, and can ask again.
_AWAY_S = 5.0


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
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for lease in company.inherit():
        leased = Leased.from_dict(lease.record)
        job_id = lease.job_id or (
            _launcher(leased.scheduler).submitted(Path(leased.job["folder"])) if leased.scheduler else None
        )
        if leased.scheduler and job_id is not None:
            found[leased.scheduler][job_id] = lease.place
        else:
            company.release(lease.place)
    return [job_id for scheduler, places in found.items() for job_id in _ended(_launcher(scheduler), places, company)]


def _launcher(scheduler: str) -> BatchLauncher:
    return BatchLauncher(SCHEDULERS[scheduler], Site(scheduler, poll_s=_POLL_S))


def _ended(launcher: BatchLauncher, places: Mapping[str, str], company: Company) -> list[str]:
    """End jobs and give their runs up; a run that has ended by itself stays, for the session that collects it."""
    statuses = launcher.poll(list(places))
    ids = [job_id for job_id, status in statuses.items() if status.state is not JobState.ENDED]
    try:
        launcher.cancel_all(ids, _AWAY_S)
    except LaunchError as error:
        msg = f"{error}; use the same command again when the scheduler answers"
        raise CannotRunHereError(msg) from error
    for job_id in ids:
        company.release(places[job_id])
    return ids
