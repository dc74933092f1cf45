"""The numbers of hardware threads, as Linux lists them, and which of them share a core.

The supervisor of a job needs it, so it imports nothing that takes longer to import than that takes to start (pathlib).
"""

# ruff: noqa: PTH123

import errno
import os
import time
from collections.abc import Iterable
from typing import Any

CPUS = "/sys/devices/system/cpu"
# As in launchers/transient_errors.py, which a supervisor that is started by its path does not find.
_TRANSIENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MOST = 2**16  # the kernel knows 8192; `0-99999999999` must not fill the memory


def parse_cpu_list(text: str) -> set[int]:
    """Read the kernel's list format: `0-3,8` is {0, 1, 2, 3, 8}.

    Raises:
        ValueError: it is none, or has numbers that no machine has.
    """
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        if int(last or first) > _MOST:
            msg = f"{text!r} has CPUs beyond {_MOST}"
            raise ValueError(msg)
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def cpu_list(cpus: Iterable[int]) -> str:
    """Return numbers in the kernel's list format."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][-1] == cpu - 1:
            ranges[-1][1:] = [cpu]
        else:
            ranges.append([cpu])
    return ",".join("-".join(map(str, each)) for each in ranges)


def one_thread_per_core(allowed: Iterable[int]) -> tuple[int, ...]:
    """Return the first allowed hardware thread of each physical core, in order."""
    allowed = set(allowed)
    return tuple(cpu for cpu in sorted(allowed) if cpu == min(threads_of(cpu) & allowed))


def threads_of(cpu: int) -> set[int]:
    """Return the hardware threads of the core that one is of; that one alone where Linux does not tell.

    Raises:
        OSError: it cannot be read now: a run would have fewer threads, or a machine more cores.
    """
    try:
        with open(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as file:
            return {cpu} | parse_cpu_list(file.read())
    except OSError as error:
        if error.errno in _TRANSIENT:
            raise
        return {cpu}
    except ValueError:
        return {cpu}


def threads_of_all(cpus: Iterable[int]) -> set[int]:
    """Return the hardware threads of the cores that these are of.

    Raises:
        OSError: as in `threads_of`.
    """
    return {thread for cpu in cpus for thread in threads_of(cpu)}


def threads_in_use(cpus: Iterable[int], per_core: int) -> list[int]:
    """Return `per_core` hardware threads of each core, those of a core side by side; `cpus` has one of each core.

    A core of which this process may use fewer has these.
    """
    if per_core == 1:
        return list(cpus)
    allowed = os.sched_getaffinity(0)
    return [thread for cpu in cpus for thread in (cpu, *sorted(threads_of(cpu) & allowed - {cpu})[: per_core - 1])]


def fewest_threads(cpus: Iterable[int], allowed: Iterable[int]) -> int:
    """Return how many allowed hardware threads the core has that has the fewest; `cpus` has one of each core."""
    usable = set(allowed)
    return min((len(threads_of(cpu) & usable) for cpu in cpus), default=1)


def current_affinity() -> dict[str, Any]:
    """Return what a program that this process starts now begins with: `launchers.job.Affinity`."""
    cpus, node_cpus = os.sched_getaffinity(0), os.cpu_count() or 0
    threads = threads_of_all(cpus) if len(cpus) < node_cpus else ()
    return {
        "node": os.uname().nodename,
        "cpus": cpu_list(cpus),
        "node_cpus": node_cpus,
        "began_at": time.time(),
        "threads": cpu_list(threads),
    }
