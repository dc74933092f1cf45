"""How a job is started on a machine."""

from launchers.base import BatchQueue, Launcher, LaunchError, LineReader
from launchers.job import STDERR, STDOUT, EndReason, Job, JobState, JobStatus, Place, Resources, Server, Usage
from launchers.mpi.start_command import MpiStart

__all__ = [
    "STDERR",
    "STDOUT",
    "BatchQueue",
    "EndReason",
    "Job",
    "JobState",
    "JobStatus",
    "LaunchError",
    "Launcher",
    "LineReader",
    "MpiStart",
    "Place",
    "Resources",
    "Server",
    "Usage",
]
