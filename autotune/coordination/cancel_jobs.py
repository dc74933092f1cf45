"""Cancel the queued and running jobs of a study."""

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
# Short, because a user waits for the answer and can ask again.
_AWAY_S = 5.0
_OVER = frozenset({JobState.ENDED, JobState.LOST})


@dataclass(frozen=True)
class Cancelled:
    """The ids of a study's jobs.

    Attributes:
        cancelled: Jobs that were cancelled.
        ended: Jobs that had already ended.
        left: Jobs that could not be ended.
        trouble: The complaints of the schedulers that have the jobs of `left`.
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
    """Stop the process that tunes a study, which would submit more jobs, and cancel the jobs; return them by outcome.

    A job that ended by itself, or that could not be ended, is left to the next session, which collects its result.

    Raises:
        BusyError: A process works on the study and cannot be stopped from here.
        StorageError: There is no such study.
    """
    StudyStore.read(url, name)  # raise before the lock, which would create the study
    with StudyLock.hold(url, name, IfHeld.TAKE_OVER, say):
        return cancel_leased(StudyStore.read(url, name, read_only=False).leases(), _launcher)


def _launcher(scheduler: str) -> BatchQueue:
    return BatchLauncher(find_batch_system(scheduler).scheduler, Site(scheduler, poll_s=_POLL_S))


def cancel_leased(leases: LeaseBook, launcher_of: Callable[[str], BatchQueue]) -> Cancelled:
    """Cancel the jobs that have leases, those of one scheduler together."""
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
    # Cancel all jobs before waiting for any.
    ending = {name: _end_running(launcher, jobs) for name, (launcher, jobs) in queues.items()}
    cancelled: list[str] = []
    ended: list[str] = []
    left: list[str] = []
    troubles: list[str] = []
    for name, (launcher, jobs) in queues.items():
        statuses = launcher.cancel_all(ending[name], _AWAY_S)
        for job in jobs:
            status = statuses.get(job.job_id)
            if status is None or _was_not_cancelled(status):
                ended.append(job.job_id)
            elif status.state in _OVER:
                cancelled.append(job.job_id)
                leases.release(job.lease.place)
            else:
                left.append(job.job_id)
        if launcher.trouble:
            troubles.append(f"{name}: {launcher.trouble}")
    return Cancelled(tuple(cancelled), tuple(ended), tuple(left), "; ".join(troubles))


def _end_running(launcher: BatchQueue, jobs: Sequence[_InQueue]) -> list[str]:
    """Tell the scheduler to end jobs; return those that had not ended before."""
    statuses = launcher.poll([job.job_id for job in jobs])
    wanted = [job_id for job_id, status in statuses.items() if status.state not in _OVER]
    launcher.end(wanted)
    return wanted


def _was_not_cancelled(status: JobStatus) -> bool:
    return status.state is JobState.ENDED and status.reason is not EndReason.CANCELLED
