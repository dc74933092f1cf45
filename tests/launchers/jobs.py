"""Programs to run in tests of launchers, and functions that wait for them."""

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from launchers import STDOUT, Job, JobState, JobStatus, Launcher
from launchers.processes import JOB_VARIABLE, find_marked
from tests.support.waiting import wait_for

# Starts a process that leaves its session, its parent and its process group, and ignores requests to end.
STUBBORN = """
import os, signal, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        open("grandchild", "w").write(str(os.getpid()))
        print("ready", flush=True)
        time.sleep(1000)
    os._exit(0)
time.sleep(%s)
"""


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", code)


def wait_for_end(launcher: Launcher, job_id: str) -> JobStatus:
    def ended() -> bool:
        return launcher.poll([job_id])[job_id].state in {JobState.ENDED, JobState.LOST}

    wait_for(ended)
    return launcher.poll([job_id])[job_id]


def run_all(launcher: Launcher, jobs: list[Job]) -> list[JobStatus]:
    """Run jobs side by side as far as there is room, since a real scheduler takes a second to start one."""
    ids = [launcher.submit(job) for job in jobs]
    wait_for(lambda: all(status.state is JobState.ENDED for status in launcher.poll(ids).values()))
    found = launcher.poll(ids)
    return [found[job_id] for job_id in ids]


def in_folders(folder: Path, names: Iterable[str]) -> list[Path]:
    made = [folder / name for name in names]
    for one in made:
        one.mkdir()
    return made


def wait_for_output(job: Job, text: str = "ready") -> None:
    wait_for(lambda: (job.folder / STDOUT).exists() and text in (job.folder / STDOUT).read_text(errors="replace"))


def supervisors_in(folder: Path) -> list[int]:
    """Return the supervisors of jobs in `folder`, which exit a moment after they have written the status."""
    root = folder.resolve()
    return list(find_marked(JOB_VARIABLE, lambda mark: Path(mark.partition(":")[2]).is_relative_to(root)))


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def supervisor_of(job_id: str) -> int:
    return int(job_id.split(":")[1])
