"""The state that the launcher of batch jobs keeps of a job."""

from dataclasses import dataclass
from pathlib import Path

from launchers.batch_systems.base import JobReport
from launchers.job import JobStatus


@dataclass
class KnownJob:
    """A batch job as far as this process knows it.

    Attributes:
        number: The scheduler's number of the job.
        folder: The folder of its run.
        report: The scheduler's last report.
        gone_since: When the scheduler first reported that the job has ended or is unknown; None while it is known.
        gone_until: When the scheduler last reported that.
        deleted_at: When the job was deleted because it was given up.
        suspended: Whether it was suspended at any time.
        started: Whether its program has started.
        cancelled: Whether this process asked for its end.
        ended: How it ended; None before that is known.
        unmetered_since: When it had ended and its energy was first queried.
        is_metered: Whether its energy is known or given up.
    """

    number: str
    folder: Path
    report: JobReport | None = None
    gone_since: float | None = None
    gone_until: float = 0.0
    deleted_at: float | None = None
    suspended: bool = False
    started: bool = False
    cancelled: bool = False
    ended: JobStatus | None = None
    unmetered_since: float | None = None
    is_metered: bool = False


def parse_job_id(job_id: str, scheduler: str) -> KnownJob:
    """Parse the id of a scheduler's job.

    Raises:
        ValueError: It is not the id of a job of this scheduler.
    """
    kind, _, rest = job_id.partition(":")
    number, colon, folder = rest.partition(":")
    if kind != scheduler or not colon:
        msg = f"{job_id!r} is not the id of a job of {scheduler}, which looks like {scheduler}:NUMBER:FOLDER"
        raise ValueError(msg)
    return KnownJob(number, Path(folder))
