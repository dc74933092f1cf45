"""How a job ended, as a failure: the part that is the same for every program."""

import signal

from launchers import EndReason, JobState
from objectives.base import ApplicationError, InfrastructureError, OutOfMemory, Output, TimedOut

NO_ROOM = "no room is left in "
"""Begins a launcher's message that /dev/shm or TMPDIR was full during a run; memory mapped from there dies of SIGBUS.
"""

_NO_SPACE = ("No space left on device", "Disk quota exceeded")
_NO_MEMORY = ("Cannot allocate memory", "Out of memory", "out of memory", "std::bad_alloc", "oom-kill", "MemoryError")


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
        raise InfrastructureError(msg, code="lost")
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
    text = _end(output.stderr)
    # The exit code is mpirun's; that a rank died of SIGBUS is only in what mpirun printed.
    killed_by_bus = status.exit_code in {-signal.SIGBUS, 128 + signal.SIGBUS} or "Bus error" in text
    if killed_by_bus and NO_ROOM in status.message:
        raise InfrastructureError(f"was killed by SIGBUS: {status.message}", code="disk-full")
    if any(words in text for words in _NO_MEMORY) or "lack of memory" in status.message:
        raise OutOfMemory(status.message or "ran out of memory", code="out-of-memory")
    if status.exit_code == -signal.SIGKILL:
        # Programs do not kill themselves, and the machine had memory left: it was an operator or another program.
        msg = "was killed from outside (SIGKILL)"
        raise InfrastructureError(msg, code="killed")
    if status.exit_code is not None and status.exit_code < 0:
        name = signal_name(-status.exit_code)
        msg = f"was killed by signal {-status.exit_code} ({name})"
        raise ApplicationError(msg, code="signal")


def check_disk(output: Output) -> None:
    """Raise if the disk was full: missing results are then not the run's fault.

    Raises:
        InfrastructureError: The program or the launcher reported a full disk.
    """
    words = next((text for text in _NO_SPACE if text in _end(output.stderr)), None)
    if words is not None or "disk is full" in output.status.message:
        raise InfrastructureError(words or output.status.message, code="disk-full")


def _end(text: str) -> str:
    return text[-10_000:]


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals only have numbers."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
