"""This boot of this machine: what tells it from all others, and how long it has lasted, which nobody can set.

The wall clock is set: by hand, by a time server, when a virtual machine goes on. What ends something, or keeps it
alive, goes by the time since the boot.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self


@cache
def boot_id() -> str:
    """Return the kernel's name for this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def since_boot_s() -> float:
    """Return how long ago this machine was booted; it goes on while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_clock() -> Callable[[], float]:
    """Return a clock of the seconds since 1970 that shows now what the wall clock shows, and that nobody can set."""
    booted_at = time.time() - since_boot_s()
    return lambda: booted_at + since_boot_s()


@dataclass(frozen=True)
class Moment:
    """A moment of some boot, in seconds since that."""

    boot: str
    since_boot_s: float

    @classmethod
    def now(cls) -> Self:
        """Return this moment."""
        return cls(boot_id(), since_boot_s())

    @property
    def ago_s(self) -> float | None:
        """How long ago it was; None if that was before this boot, or elsewhere."""
        return since_boot_s() - self.since_boot_s if self.boot == boot_id() else None
