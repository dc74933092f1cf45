"""The end of a study's process in words."""

import signal

from autotune.errors import ExitCode
from autotune.supervision.reconcile import Ended

_CODES = {
    ExitCode.OK: "it ended by itself",
    ExitCode.USAGE: "its study file or an option is wrong",
    ExitCode.CANNOT_RUN_HERE: "it cannot run on this machine",
    ExitCode.NOTHING_WORKED: "no configuration has worked",
    ExitCode.STORAGE: "the storage, or a file, cannot be read or written",
    ExitCode.BUSY: "somebody else holds the study or the cores",
    ExitCode.UNFINISHED: "the time that it was given is over, and there is more to do",
    ExitCode.PAUSED: "it was paused by somebody else",
    ExitCode.NOTHING_FEASIBLE: "it ended by itself; no configuration keeps its limits",
    ExitCode.CHANGED: "it ended by itself; the machine, or what runs on it, has changed",
    ExitCode.INTERRUPTED: "it was interrupted by somebody else",
}


def in_words(ended: Ended | None) -> str:
    """Say how a process ended; None: its end was not recorded."""
    if ended is None:
        return "its process is gone, and nobody saw how that ended"
    if ended.error:
        return f"its process could not be started: {ended.error}"
    if ended.signal is not None:
        return f"its process was killed by {_named(ended.signal)}"
    known = {int(code): text for code, text in _CODES.items()}
    return known.get(ended.code if ended.code is not None else -1, f"its process crashed (exit code {ended.code})")


def _named(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
