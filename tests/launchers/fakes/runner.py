"""Runs one job of a stand-in scheduler (`python -IS runner.py STATE NUMBER`) and leaves nothing of it behind."""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from launchers.process_tree import descendants
from tests.launchers.fakes.state import HELD_BACK, Record, State

_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
# Longer than the grace period of a supervisor.
_GRACE_S = 6.0
_AT_ONCE = frozenset({"node failed", "killed"})


def main() -> None:
    """Run the job and record how it ended."""
    state, number = State(Path(sys.argv[1])), sys.argv[2]
    # Nodes are not confined as the tests may be; a job gets all cores, or every job the same one.
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    if state.switch("one core") is not None:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # The process that started this one holds the lock until it has recorded the start.
    with state.locked():
        job = state.read(number)
    assert job is not None
    program = _spawn(job, state)
    how, status = _watch(state, job, program)
    _kill_all()
    if how == "timed out" and "walltime_message" in job:
        with suppress(OSError), Path(job["folder"], job["output"]).open("a") as log:
            log.write(f"{job['walltime_message']}\n")
    state.ended(number, how, None if status is None else os.waitstatus_to_exitcode(status))
    (state.folder / "runners" / str(os.getpid())).unlink()


def _spawn(job: Record, state: State) -> int:
    # A job whose folder was removed while it was queued runs elsewhere, and ends when it looks for its files.
    with suppress(FileNotFoundError):
        os.chdir(job["cwd"])
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    output = str(Path(job["folder"], job["output"]))
    if Path(output).parent.is_dir():
        files.append((os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
        files.append((os.POSIX_SPAWN_DUP2, 1, 2))
    script = str(state.folder / "scripts" / job["id"])
    defaults = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP)
    numbers = dict.fromkeys(("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"), job["id"])
    program = os.posix_spawn(
        script,
        [script],
        # A home without a profile: a person's own may be slow, or wait for another login's.
        job["environment"] | numbers | _host(job, state) | {"HOME": str(state.folder)},
        file_actions=files,
        setsid=True,
        setsigmask=(),
        setsigdef=defaults,
    )
    # The folder may be removed while the end of the job is recorded.
    os.chdir("/")
    return program


def _host(job: Record, state: State) -> dict[str, str]:
    """Return the variables that name the job's host, if there are several hosts."""
    if state.switch("host names") is None:
        return {}
    file = state.folder / f"nodes-{job['id']}"
    file.write_text(f"{job['host']}.cluster\n" * job["cores"])
    own = {"PBS_NODEFILE": str(file)} if "PBS_NODEFILE" in job["environment"] else {}
    return own | dict.fromkeys(("SLURMD_NODENAME", "HOSTNAME", "LSB_HOSTS"), job["host"])


def _watch(state: State, job: Record, program: int) -> tuple[str, int | None]:
    """Return how the job ended, and the status of its script."""
    how, status = "exited", None
    deadline = time.monotonic() + job["walltime_s"] * float(state.switch("walltime_scale") or 1)
    kill_at = float("inf")
    while status is None:
        now = time.monotonic()
        if now >= kill_at:
            return how, None
        if now >= deadline and how == "exited":
            how, kill_at = "timed out", _end_soon(now, job, program)
        got = signal.sigtimedwait(HELD_BACK, max(0.0, min(deadline if how == "exited" else kill_at, now + 1) - now))
        if got is not None and got.si_signo == signal.SIGTERM and how == "exited":
            how = (state.read(job["id"]) or job)["asked"] or "cancelled"
            kill_at = now if how in _AT_ONCE else _end_soon(now, job, program)
        status = _reap(program)
    return how, status


def _end_soon(now: float, job: Record, program: int) -> float:
    if job.get("notify"):
        # Grid Engine warns only the process group of the script.
        with suppress(ProcessLookupError):
            os.killpg(program, signal.SIGUSR2)
        return now + _GRACE_S
    for pid in descendants(os.getpid()):
        _kill(pid, signal.SIGTERM)
    return now + _GRACE_S


def _reap(program: int) -> int | None:
    found = None
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
            if ended[0] == program:
                found = ended[1]
    return found


def _kill_all() -> None:
    while left := descendants(os.getpid()):
        for pid in left:
            _kill(pid, signal.SIGKILL)
        _reap(-1)
        time.sleep(0.005)


def _kill(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


if __name__ == "__main__":
    main()
