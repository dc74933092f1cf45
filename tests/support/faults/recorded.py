"""Make runs of a program that is never executed: its output follows from the configuration and the run's purpose.

The files are those of a real supervisor. The noise depends on the number of the run within its trial, not on the number
of the trial, since a trial that was never launched leaves its number unused.
"""

import json
import os
import random
from pathlib import Path

from autotune.records.series import RunId
from launchers import STDERR, STDOUT, EndReason, JobState, JobStatus, Usage
from launchers.status import read_status
from launchers.supervisor import STATUS_FILE
from tests.support.faults.library import elsewhere
from tests.support.quick_study import quick_sections

LAUNCHES = "launches.log"
STUDY = """
objective = "command"

[options]
argv = ["true", "{x}"]
success = ["done"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took (\\S+)', file = "results/figures" }]
""" + quick_sections(trials=3, high=40)
# In a subfolder, because such files are deleted when the run has ended.
_RESULTS = "results"


def took_s(x: int, run_name: str) -> float:
    """Return the time of a run."""
    run = RunId.parse(run_name)
    noise = random.Random(f"{x} {run.series.kind} {run.round} {run.number if run.series.is_tuning else 0}")
    return round(3.0 + abs(x - 20) / 10 + noise.uniform(0.0, 0.1), 4)


def made(folder: Path, x: int) -> JobStatus:
    """Make a run in its folder, and return how it ended."""
    with elsewhere():
        seconds = took_s(x, folder.name)
        log = os.open(LAUNCHES, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, f"{folder.name} {x}\n".encode())
        os.close(log)
        (folder / STDOUT).write_text("done\n")
        (folder / STDERR).write_text("")
        (folder / _RESULTS).mkdir(exist_ok=True)
        (folder / _RESULTS / "figures").write_text(f"took {seconds}\n")
        status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(seconds, seconds, 10**6))
        said = {"state": status.state, "reason": status.reason, "exit_code": 0, "message": ""}
        used = {"elapsed_s": seconds, "cpu_s": seconds, "peak_memory_bytes": 10**6}
        (folder / STATUS_FILE).write_text(json.dumps(said | used))
        assert read_status(folder) is not None
    return status
