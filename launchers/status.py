"""How a job ended, as its supervisor recorded it in the job's folder."""

import json
import os
from contextlib import suppress
from pathlib import Path

from launchers.job import Affinity, EndReason, JobState, JobStatus, Usage
from launchers.meters.figures import read_figures
from launchers.noise.disturbance import Disturbance
from launchers.supervisor import AFFINITY_FILE, STATUS_FILE

# The job may have written other things to these files, or the disk may have lost them.
_NO_STATUS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def read_status(folder: Path) -> JobStatus | None:
    """Return the status that the supervisor wrote when the job ended; None before that, or if it is unreadable."""
    try:
        stored = json.loads((folder / STATUS_FILE).read_bytes())
        affinity = stored.get("affinity")
        return JobStatus(
            state=JobState(stored["state"]),
            reason=EndReason(stored["reason"]),
            exit_code=stored["exit_code"],
            usage=Usage(stored["elapsed_s"], stored["cpu_s"], stored["peak_memory_bytes"]),
            message=stored["message"],
            affinity=Affinity(**affinity) if affinity else None,
            disturbance=Disturbance.from_figures(stored.get("disturbance", {})),
            metered=read_figures(stored.get("metered")),
        )
    except (OSError, *_NO_STATUS):
        return None


def read_shared_status(folder: Path) -> JobStatus | None:
    """Return the status that a shared file system's server has, refreshing the client's cache first.

    NFS remembers for a minute or longer (acdirmax) that a file does not exist; listing its folder makes it ask again.
    """
    with suppress(OSError):
        os.listdir(folder)  # noqa: PTH208  for its effect on the cache
    return read_status(folder)


def read_affinity(folder: Path) -> Affinity | None:
    """Return the CPUs that the job in a folder began with; None before it began, or if that is unreadable."""
    try:
        return Affinity(**json.loads((folder / AFFINITY_FILE).read_bytes()))
    except (OSError, *_NO_STATUS):
        return None
