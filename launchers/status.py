"""How a job ended, as its supervisor wrote it down in the job's folder."""

import json
import os
from contextlib import suppress
from pathlib import Path

from launchers.job import Affinity, EndReason, JobState, JobStatus, Usage
from launchers.meters.figures import read_figures
from launchers.noise.disturbance import Disturbance
from launchers.supervisor import AFFINITY_FILE, STATUS_FILE

# The job may write into its folder, and a disk may lose what was written.
_NO_STATUS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def read_status(folder: Path) -> JobStatus | None:
    """Return what the supervisor wrote at the end of the job; None before that, and if it is no status."""
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
    """Return what `read_status` does, as the server of a shared file system has it.

    NFS keeps for a minute or longer (acdirmax) that a file is not there; when its folder is listed, it asks again.
    """
    with suppress(OSError):
        os.listdir(folder)  # noqa: PTH208  only to be asked
    return read_status(folder)


def read_affinity(folder: Path) -> Affinity | None:
    """Return which CPUs the job in a folder began with; None before it did, and if that is not known."""
    try:
        return Affinity(**json.loads((folder / AFFINITY_FILE).read_bytes()))
    except (OSError, *_NO_STATUS):
        return None
