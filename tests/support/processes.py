"""List processes of this machine, which may end at any time."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil


def living(
    is_wanted: Callable[[psutil.Process], bool], among: Iterable[psutil.Process] | None = None
) -> list[psutil.Process]:
    """Return the other processes that are wanted and have not ended, by default among all of this machine."""
    found = psutil.process_iter() if among is None else among
    return [process for process in found if process.pid != os.getpid() and _is_living(process, is_wanted)]


def left_in(folder: Path) -> list[int]:
    """Return the ids of the living processes that work in a folder or below it."""
    root = folder.resolve()
    return [process.pid for process in living(lambda process: Path(process.cwd()).is_relative_to(root))]


def command_line(process: psutil.Process) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _is_living(process: psutil.Process, is_wanted: Callable[[psutil.Process], bool]) -> bool:
    try:
        return is_wanted(process) and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):  # it has just ended, or belongs to another user
        return False
