"""The current boot of this machine: its identifier, and the time since it began.

The wall clock may jump: by hand, by a time server, when a virtual machine resumes. Deadlines and leases therefore use
the time since the boot, which cannot be set.
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
    """Return the seconds since this machine booted, including the time that it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def steady_clock() -> Callable[[], float]:
    """Return a clock of the seconds since 1970 that agrees with the wall clock now and ignores later changes of it."""
    booted_at = time.time() - since_boot_s()
    return lambda: booted_at + since_boot_s()


@dataclass(frozen=True)
class Moment:
    """A moment: the boot in which it lies, and the seconds from that boot to it."""

    boot: str
    since_boot_s: float

    @classmethod
    def now(cls) -> Self:
        """Return this moment."""
        return cls(boot_id(), since_boot_s())

    @property
    def ago_s(self) -> float | None:
        """Seconds from this moment until now; None if it lies in another boot, or on another machine."""
        return since_boot_s() - self.since_boot_s if self.boot == boot_id() else None
