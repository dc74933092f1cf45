"""What the launcher of a batch system's jobs keeps of a job in memory."""

from dataclasses import dataclass
from pathlib import Path

from launchers.batch_systems.base import JobReport
from launchers.job import JobStatus


@dataclass
class KnownJob:
    """What this process knows of a job: what the scheduler said last, and since when it has been gone from there.

    Its `number` is the scheduler's, its `folder` that of its run. `gone_until` is when the scheduler said so last.
    `deleted_at` is when it was deleted because it was given up. Since `unmetered_since` it has ended, and its energy is
    asked for; one that `is_metered` is asked for no more.
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
    """Return what the id of a scheduler's job says of it.

    Raises:
        ValueError: it is not the id of such a job.
    """
    kind, _, rest = job_id.partition(":")
    number, colon, folder = rest.partition(":")
    if kind != scheduler or not colon:
        msg = f"{job_id!r} is not the id of a job of {scheduler}, which looks like {scheduler}:NUMBER:FOLDER"
        raise ValueError(msg)
    return KnownJob(number, Path(folder))
