"""Cancelling: no job of a study is left in any queue."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.coordination.lease_record import LeaseRecord
from autotune.locks import IfHeld
from autotune.storage.leases import Lease, LeaseBook
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from launchers import BatchQueue, EndReason, JobState, JobStatus
from launchers.batch import BatchLauncher
from launchers.batch_systems.registry import find_batch_system
from launchers.site import Site

_POLL_S = 1.0
# Somebody waits for the answer, and can ask again.
_AWAY_S = 5.0
_OVER = frozenset({JobState.ENDED, JobState.LOST})


@dataclass(frozen=True)
class Cancelled:
    """The ids of a study's jobs: which were cancelled, which had ended by themselves, and which could not be ended.

    `trouble` is what the schedulers of those that are `left` complained of.
    """

    cancelled: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True)
class _InQueue:
    lease: Lease
    job_id: str


def cancel_jobs(url: str, name: str, say: Callable[[str], None]) -> Cancelled:
    """Cancel a study's jobs, and stop the process that tunes it: it would submit others. Return the jobs by outcome.

    What ended by itself is left to the next session of the study, which collects its result; so is what goes on.

    Raises:
        BusyError: a process works on the study and cannot be stopped from here.
        StorageError: there is no such study.
    """
    StudyStore.read(url, name)  # a study that is not there must not be created
    with StudyLock.hold(url, name, IfHeld.TAKE_OVER, say):
        return cancel_leased(StudyStore.read(url, name, read_only=False).leases(), _launcher)


def _launcher(scheduler: str) -> BatchQueue:
    return BatchLauncher(find_batch_system(scheduler).scheduler, Site(scheduler, poll_s=_POLL_S))


def cancel_leased(leases: LeaseBook, launcher_of: Callable[[str], BatchQueue]) -> Cancelled:
    """Cancel the jobs that have leases; those of one scheduler together, by its launcher."""
    queues: dict[str, tuple[BatchQueue, list[_InQueue]]] = {}
    for lease in leases.all():
        leased = LeaseRecord.from_dict(lease.record)
        if leased.scheduler and leased.scheduler not in queues:
            queues[leased.scheduler] = launcher_of(leased.scheduler), []
        launcher, jobs = queues.get(leased.scheduler, (None, []))
        job_id = None if launcher is None else lease.job_id or launcher.find_submitted(Path(leased.job["folder"]))
        if job_id is None:
            leases.release(lease.place)
        else:
            jobs.append(_InQueue(lease, job_id))
    # All are cancelled before any is waited for.
    ending = {name: _told(launcher, jobs) for name, (launcher, jobs) in queues.items()}
    cancelled: list[str] = []
    ended: list[str] = []
    left: list[str] = []
    troubles: list[str] = []
    for name, (launcher, jobs) in queues.items():
        statuses = launcher.cancel_all(ending[name], _AWAY_S)
        for job in jobs:
            status = statuses.get(job.job_id)
            if status is None or _ended_by_itself(status):
                ended.append(job.job_id)
            elif status.state in _OVER:
                cancelled.append(job.job_id)
                leases.release(job.lease.place)
            else:
                left.append(job.job_id)
        if launcher.trouble:
            troubles.append(f"{name}: {launcher.trouble}")
    return Cancelled(tuple(cancelled), tuple(ended), tuple(left), "; ".join(troubles))


def _told(launcher: BatchQueue, jobs: Sequence[_InQueue]) -> list[str]:
    """Tell the scheduler to end jobs, and return those that had not ended before."""
    statuses = launcher.poll([job.job_id for job in jobs])
    wanted = [job_id for job_id, status in statuses.items() if status.state not in _OVER]
    launcher.end(wanted)
    return wanted


def _ended_by_itself(status: JobStatus) -> bool:
    return status.state is JobState.ENDED and status.reason is not EndReason.CANCELLED
