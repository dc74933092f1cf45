"""The allocation that this process runs in: its hosts and its end, as the batch system describes them."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from launchers.batch_systems.registry import all_batch_systems
from launchers.batch_systems.system import Allocation
from launchers.software.ask import ask

_PATIENCE_S = 30.0


def read(environment: Mapping[str, str], read_text: Callable[[str], str] | None = None) -> Allocation | None:
    """Return the allocation that the environment describes; None outside an allocation.

    Args:
        environment: The variables of this process.
        read_text: Reads a file, such as the list of hosts.
    """
    allocations = (system.allocation(environment, read_text or _read_text) for system in all_batch_systems())
    return next(filter(None, allocations), None)


def ask_end(allocation: Allocation, run: Callable[[Sequence[str]], str] | None = None) -> float | None:
    """Ask the batch system once for the end of the allocation, in seconds since 1970; None if it does not answer."""
    question = next((system.end for system in all_batch_systems() if system.label == allocation.system), None)
    if question is None:
        return None
    try:
        return question.read((run or _run)(question.command(allocation.id)), time.time())
    except OSError:
        return None


def find_end(allocation: Allocation, now: float, run: Callable[[Sequence[str]], str] | None = None) -> float | None:
    """Return the end of the allocation from its environment, or else from a query of the batch system.

    An end before `now` is ignored: the environment is that of an earlier job, or the job was extended.
    """
    if allocation.ends_at is not None and allocation.ends_at > now:
        return allocation.ends_at
    reported = ask_end(allocation, run)
    return reported if reported is not None and reported > now else None


def _read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _run(argv: Sequence[str]) -> str:
    """Run a command and return its output.

    Raises:
        OSError: The command is not installed, did not answer or failed.
    """
    printed = ask(argv, _PATIENCE_S)
    if printed.exit_code != 0:
        raise OSError(printed.complaint)
    return printed.text
