"""How a job is started on a machine."""

from launchers.base import STDERR, STDOUT, Launcher, LaunchError, LineReader
from launchers.job import EndReason, Job, JobState, JobStatus, MpiStart, Resources, Usage

__all__ = [
    "STDERR",
    "STDOUT",
    "EndReason",
    "Job",
    "JobState",
    "JobStatus",
    "LaunchError",
    "Launcher",
    "LineReader",
    "MpiStart",
    "Resources",
    "Usage",
]
