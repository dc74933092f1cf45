"""How a job ended, as a failure: the part that is the same for every program."""

import re
import signal

from launchers import EndReason, JobState
from objectives.base import ApplicationError, InfrastructureError, OutOfMemory, Output, TimedOut
from objectives.system_failures import DISK, failure_by, find_system_failure

LOST = "lost"
"""The code of a run of whose end nothing is known, or that others ended."""

NO_ROOM = "no room is left in "
"""Begins a launcher's message that /dev/shm or TMPDIR was full during a run; memory mapped from there dies of SIGBUS.
"""

_SIGNALS = (
    re.compile(r"exited on signal (\d+)"),  # Open MPI
    re.compile(r"EXIT STRING: [^\n(]*\(signal (\d+)\)"),  # MPICH, Intel MPI (hydra)
    re.compile(r"KILLED BY SIGNAL:\s*(\d+)"),  # Intel MPI
)
# A shell and mpirun add 128 to these; other exit codes from 129 up are the program's own.
_FATAL = frozenset(
    {
        *(signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV),
        *(signal.SIGTERM, signal.SIGXCPU, signal.SIGXFSZ),
    }
)


def check_ending(output: Output) -> None:
    """Raise the failure that the end of the job itself shows. Other exit codes are for the objective to judge.

    Raises:
        InfrastructureError: The end of the job is unknown, it could not run, it was killed from outside, or /dev/shm or
            TMPDIR was full.
        TimedOut: It reached its time limit.
        OutOfMemory: It said so, was killed when the machine ran out of memory, or reached its memory limit.
        ApplicationError: It died of a signal, or was stopped because it printed without end.
    """
    status = output.status
    if status.state is not JobState.ENDED or status.reason in {EndReason.NOT_STARTED, EndReason.CANCELLED}:
        msg = status.message or "the job was lost: it is unknown how it ended"
        raise InfrastructureError(msg, code=LOST)
    if status.reason is EndReason.TIMED_OUT:
        msg = f"was stopped at its time limit after {status.usage.elapsed_s:.1f} s"
        raise TimedOut(msg, code="time-limit")
    if status.reason is EndReason.OUTPUT_LIMIT:
        raise ApplicationError(status.message or "printed more than a run may", code="output-limit")
    if status.reason is EndReason.MEMORY_LIMIT:
        raise OutOfMemory(f"was stopped: {status.message}", code="memory-limit")
    if status.exit_code == 0:
        return
    check_disk(output)
    text = f"{_end(output.stderr)}\n{_end(output.stdout)}"
    number = signal_in(output)
    # The exit code is mpirun's; that a rank died of SIGBUS may be only in what mpirun printed.
    if (number == signal.SIGBUS or "Bus error" in text) and NO_ROOM in status.message:
        raise InfrastructureError(f"was killed by SIGBUS: {status.message}", code="disk-full")
    if "lack of memory" in status.message:
        raise OutOfMemory(status.message, code="out-of-memory")
    if (failure := find_system_failure(text, output.job)) is not None:
        is_memory = isinstance(failure, OutOfMemory)
        raise OutOfMemory(f"ran out of memory: {failure}", failure.code) if is_memory else failure
    if number is not None:
        raise _killed(number)


def _killed(number: int) -> InfrastructureError | ApplicationError:
    if number in {signal.SIGKILL, signal.SIGTERM}:
        # Programs do not kill themselves, and the machine had memory left: it was an operator or another program.
        return InfrastructureError(f"was killed from outside ({signal_name(number)})", code="killed")
    return ApplicationError(f"was killed by signal {number} ({signal_name(number)})", code="signal")


def signal_in(output: Output) -> int | None:
    """Return the signal that ended a job or one of its ranks; None if there was none, or it is not known."""
    for pattern in _SIGNALS:
        if match := pattern.search(f"{output.stderr}\n{output.stdout}"):
            return int(match[1]) if len(match[1]) < 4 else None
    code = output.status.exit_code
    if code is not None and code < 0:
        return -code
    return code - 128 if code is not None and code - 128 in _FATAL else None


def check_disk(output: Output) -> None:
    """Raise if the disk was full or the file server away: missing results are then not the run's fault.

    Raises:
        InfrastructureError: The program or the launcher reported it.
    """
    if "disk is full" in output.status.message:
        raise InfrastructureError(output.status.message, code="disk-full")
    if (failure := failure_by(DISK, _end(output.stderr))) is not None:
        raise failure


def _end(text: str) -> str:
    return text[-10_000:]


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals only have numbers."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
