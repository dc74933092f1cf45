"""Find and end processes by a mark in their environment, when no process that knows them is left.

Only this user's processes are searched, and only the environment that they were started with. A program that removes
the variable (`env -i`), or overwrites its environment to show a title, is not found.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

JOB_VARIABLE = "AUTOTUNE_JOB_ID"
SESSION_VARIABLE = "AUTOTUNE_SESSION"

# New processes may appear while others are killed, and a process that waits for a dead file system cannot be killed.
_PATIENCE_S = 10.0


def read_mark(pid: int, variable: str) -> str | None:
    """Return the value of a variable in a process's environment; None without it, or if the process has ended."""
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = os.fsencode(variable) + b"="
    for entry in environment.split(b"\0"):
        if entry.startswith(prefix):
            return os.fsdecode(entry.removeprefix(prefix))
    return None


def own_processes() -> Iterator[int]:
    """Yield the ids of this user's processes, except this one."""
    user = os.geteuid()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if entry.stat().st_uid == user:
                    yield int(entry.name)


def find_marked(variable: str, wanted: Callable[[str], bool]) -> dict[int, str]:
    """Return the marks, by process id, of this user's processes whose mark satisfies `wanted`."""
    marks = ((pid, read_mark(pid, variable)) for pid in own_processes())
    return {pid: mark for pid, mark in marks if mark is not None and wanted(mark)}


def kill_marked(wanted: Callable[[str], bool]) -> None:
    """Kill this user's processes whose job mark satisfies `wanted` until none is left.

    This process is spared, whatever its mark.
    """
    give_up_at = time.monotonic() + _PATIENCE_S
    while pids := find_marked(JOB_VARIABLE, wanted):
        signal_all(pids, signal.SIGKILL)
        if time.monotonic() >= give_up_at:
            break
        time.sleep(0.005)


def signal_all(pids: "dict[int, str] | list[int]", number: signal.Signals) -> None:
    """Send a signal to processes; ignore those that have ended."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
