"""What the launcher of a batch system's jobs keeps of a job in memory."""

from dataclasses import dataclass
from pathlib import Path

from launchers.batch_systems.base import Seen
from launchers.job import JobStatus


@dataclass
class KnownJob:
    """What this process knows of a job: what the scheduler said last, and since when it has been gone from there.

    Its `number` is the scheduler's, its `folder` that of its run. `gone_until` is when the scheduler said so last.
    """

    number: str
    folder: Path
    seen: Seen | None = None
    gone_since: float | None = None
    gone_until: float = 0.0
    suspended: bool = False
    started: bool = False
    cancelled: bool = False
    ended: JobStatus | None = None
