"""The numbers of hardware threads, as Linux lists them, and which of them share a core."""

from collections.abc import Iterable
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")


def parse_cpu_list(text: str) -> set[int]:
    """Read the kernel's list format: `0-3,8` is {0, 1, 2, 3, 8}."""
    cpus: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def one_thread_per_core(allowed: Iterable[int]) -> tuple[int, ...]:
    """Return the first allowed hardware thread of each physical core, in order."""
    allowed = set(allowed)
    chosen = []
    for cpu in sorted(allowed):
        siblings = _siblings(cpu)
        if cpu == min(parse_cpu_list(siblings) & allowed, default=cpu):
            chosen.append(cpu)
    return tuple(chosen)


def _siblings(cpu: int) -> str:
    try:
        return (CPUS / f"cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return ""
