"""Runs several jobs one after the other, as one job: `python -I sequence.py`, in that job's folder.

A supervisor of its own runs each part in its own folder, with its time limit, output, usage and status file, as if it
were a separate job. The sequence ends when a part fails, since later parts would be useless, or when a part reaches the
time after which its run has lost. It continues when a part reaches its own time limit, since some programs are meant to
be stopped that way.

The sequence prints a line of JSON for each part that ended well: `name`, `folder`, `number` (from 1), `of`.
"""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from launchers.base import LaunchError
from launchers.cpus import threads_in_use
from launchers.job import STDERR, STDOUT, EndReason, Job, JobStatus
from launchers.node import supervise
from launchers.secret import fill_masked, write_private
from launchers.server import SERVER_FILE, with_server
from launchers.status import read_status
from launchers.steps import with_steps
from launchers.supervisor import STATUS_FILE

PARTS_FILE = ".autotune-parts.json"

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_ASKED_TO_END = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR2)


Limits = tuple[float, int]
"""How many seconds a job has to end before it is killed, and how many bytes it may print."""


def prepare_command(
    job: Job,
    command: Callable[[Job], Sequence[str]],
    environment: Callable[[Job], Mapping[str, str]],
    limits: Limits,
    python: Sequence[str],
) -> list[str]:
    """Return the command line that runs a job with its preparing steps and server; write its parts to its folder.

    Args:
        job: The job.
        command: Returns the command line of a job or a part.
        environment: Returns the variables of a part that are added to those of the sequence.
        limits: The grace period and output limit of each part.
        python: Starts an interpreter.

    Raises:
        LaunchError: The folder of the job or of a part is not writable.
    """
    if not job.parts:
        return _own_command(job, command, limits, python)
    parts = [
        _part_spec(part, _own_command(part, command, limits, python), environment(part), limits)
        for part in job.placed_parts
    ]
    try:
        for part in job.parts:
            (part.folder / STATUS_FILE).unlink(missing_ok=True)
        write_private(job.folder / PARTS_FILE, json.dumps(parts))
    except OSError as error:
        msg = f"the job's folder {job.folder} is not writable: {error.strerror}"
        raise LaunchError(msg) from error
    return [*python, __file__]


def _own_command(job: Job, command: Callable[[Job], Sequence[str]], limits: Limits, python: Sequence[str]) -> list[str]:
    """Return the command line of a job without parts, with its server and its preparing steps.

    Raises:
        LaunchError: The job's folder is not writable.
    """
    words, server = list(command(job)), job.server
    if server is not None:
        judge = [] if server.search is None else [python[0], "-I", server.search.judge]
        spec = asdict(server) | {
            "environment": fill_masked(server.environment, os.environ),
            "judge": judge,
            "output_limit_bytes": limits[1],
        }
        try:
            write_private(job.folder / SERVER_FILE, json.dumps(spec))
        except OSError as error:
            msg = f"the job's folder {job.folder} is not writable: {error.strerror}"
            raise LaunchError(msg) from error
        words = with_server(words, list(python))
    return with_steps(words, job.prepare, list(python))


def _part_spec(part: Job, argv: Sequence[str], environment: Mapping[str, str], limits: Limits) -> dict[str, Any]:
    """Return the description of a part for its supervisor and for the sequence."""
    return {
        "name": part.name,
        "argv": list(argv),
        "environment": dict(environment),
        "folder": os.fspath(part.folder.resolve()),
        "stdout": STDOUT,
        "stderr": STDERR,
        "cpus": threads_in_use(part.resources.cpus, part.resources.threads_per_core),
        "nodes": part.resources.nodes,
        "gpus": part.resources.gpus,
        "meter": [],
        "is_part": True,
        "time_limit_s": part.time_limit_s,
        "lost_after_s": part.lost_after_s,
        "grace_s": limits[0],
        "output_limit_bytes": limits[1],
        "memory_limit_bytes": part.memory_limit_bytes,
        "launcher_pid": None,
    }


def last_folder(folder: Path, parts: Iterable[Path]) -> Path:
    """Return the folder of the part that ran last, such as the one that failed; the job's own folder without parts."""
    started = [part for part in parts if (part / STDOUT).exists()]
    return started[-1] if started else folder


def main() -> int:
    """Run the parts; return the exit code of the last one that ran, or 0 if it was stopped at a limit."""
    parts = json.loads(Path(PARTS_FILE).read_bytes())
    received_signals: list[int] = []
    for ending in _ASKED_TO_END:
        signal.signal(ending, lambda received, _: received_signals.append(received))
    for number, part in enumerate(parts, start=1):
        status = _run(part)
        if received_signals or status is None or not _may_continue(part, status):
            return _exit_code(status)
        line = {"name": part["name"], "folder": part["folder"], "number": number, "of": len(parts)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return 0


def _run(part: dict[str, Any]) -> JobStatus | None:
    """Run one part to its end under a supervisor in a process of its own."""
    limits = [limit for limit in (part["time_limit_s"], part["lost_after_s"]) if limit is not None]
    spec = part | {"time_limit_s": min(limits, default=None), "environment": dict(os.environ) | part["environment"]}
    sequence = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != sequence:
                os._exit(1)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = supervise(Path(part["folder"]), spec)
        finally:
            os._exit(code)
    # A signal that ends the job reaches all its processes: the supervisor ends the part, and this process waits for it.
    os.waitpid(pid, 0)
    with suppress(OSError):
        return read_status(Path(part["folder"]))
    return None


def _exit_code(status: JobStatus | None) -> int:
    """Return the exit code of a sequence whose last part ended with `status`, as a shell would report it."""
    if status is not None and status.reason is EndReason.TIMED_OUT:
        return 0
    if status is None or status.exit_code is None:
        return 1
    return status.exit_code if status.exit_code >= 0 else 128 - status.exit_code


def _may_continue(part: Mapping[str, Any], status: JobStatus) -> bool:
    if status.reason is EndReason.TIMED_OUT:
        lost_after_s = part["lost_after_s"]
        return lost_after_s is None or status.usage.elapsed_s < lost_after_s
    return status.reason is EndReason.EXITED and status.exit_code == 0


if __name__ == "__main__":
    sys.exit(main())
