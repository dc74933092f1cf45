"""CPU numbers (hardware threads) as Linux lists them, and which of them share a core.

The supervisor of every job imports this module, so it imports only the standard library, and not pathlib, which takes
longer to import than the supervisor takes to start.
"""

# ruff: noqa: PTH123

import errno
import os
import time
from collections.abc import Iterable
from typing import Any

CPUS = "/sys/devices/system/cpu"
# A copy of part of launchers/software/transient_errors.py: the supervisor is started by path and cannot import it.
_TRANSIENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_MOST = 2**16  # Linux supports 8192 CPUs; reject a range such as `0-99999999999`, which would fill the memory


def parse_cpu_list(text: str) -> set[int]:
    """Parse the kernel's list format: `0-3,8` is {0, 1, 2, 3, 8}.

    Raises:
        ValueError: The text is not such a list, or has numbers larger than any machine's.
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
    """Format CPU numbers in the kernel's list format."""
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][-1] == cpu - 1:
            ranges[-1][1:] = [cpu]
        else:
            ranges.append([cpu])
    return ",".join("-".join(map(str, each)) for each in ranges)


def one_thread_per_core(allowed: Iterable[int]) -> tuple[int, ...]:
    """Return the first allowed hardware thread of each physical core, in ascending order."""
    allowed = set(allowed)
    return tuple(cpu for cpu in sorted(allowed) if cpu == min(threads_of(cpu) & allowed))


def threads_of(cpu: int) -> set[int]:
    """Return the hardware threads of the core that `cpu` belongs to; only `cpu` itself if Linux does not list them.

    Raises:
        OSError: The list cannot be read at the moment. Guessing would give a run fewer threads or a machine more cores.
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
    """Return the hardware threads of all cores that these CPUs belong to.

    Raises:
        OSError: See `threads_of`.
    """
    return {thread for cpu in cpus for thread in threads_of(cpu)}


def threads_in_use(cpus: Iterable[int], per_core: int) -> list[int]:
    """Return up to `per_core` hardware threads of each core, grouped by core.

    Args:
        cpus: One hardware thread of each core.
        per_core: How many to use; if this process may use fewer of a core, they are all used.
    """
    if per_core == 1:
        return list(cpus)
    allowed = os.sched_getaffinity(0)
    return [thread for cpu in cpus for thread in (cpu, *sorted(threads_of(cpu) & allowed - {cpu})[: per_core - 1])]


def fewest_threads(cpus: Iterable[int], allowed: Iterable[int]) -> int:
    """Return the smallest number of allowed hardware threads of any core; `cpus` has one of each core."""
    usable = set(allowed)
    return min((len(threads_of(cpu) & usable) for cpu in cpus), default=1)


def current_affinity() -> dict[str, Any]:
    """Return the affinity that this process's next program inherits, as fields of `launchers.job.Affinity`."""
    cpus, node_cpus = os.sched_getaffinity(0), os.cpu_count() or 0
    threads = threads_of_all(cpus) if len(cpus) < node_cpus else ()
    return {
        "node": os.uname().nodename,
        "cpus": cpu_list(cpus),
        "node_cpus": node_cpus,
        "began_at": time.time(),
        "threads": cpu_list(threads),
    }
