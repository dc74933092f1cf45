"""Wait for a quiet machine: while other processes use the cores, a comparison would show little."""

import os
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Self

from autotune.display.console import Display, duration
from autotune.studyfile import NoiseMode, NoiseSection
from launchers.cpus import threads_of_all
from launchers.noise.meter import PROC, parse_cpu_times
from launchers.process_tree import cpu_ticks

# Share of the cores' time. An idle machine uses one or two percent.
_BUSY = 0.1
_LOOK_S = 0.5
_PAUSE_S = 2.0


@dataclass(frozen=True)
class Use:
    """How other processes use the cores.

    Attributes:
        share: Share of the cores' time that they use.
        process: The process that uses most; empty if unknown.
    """

    share: float
    process: str = ""

    @property
    def is_quiet(self) -> bool:
        """Whether runs may be compared."""
        return self.share <= _BUSY

    def words(self) -> str:
        """Return this in words."""
        return f"others use {self.share:.0%} of the cores" + (f", process {self.process}" if self.process else "")


def use_by_others(cpus: Collection[int]) -> Use | None:
    """Measure for a moment how others use these CPUs, while no run of ours is in flight; None if the kernel does not
    show it.

    The other hardware threads of the same cores count as well. Processes with a positive nice value do not, where they
    give way to others.
    """
    before, own_s = _times(), time.process_time()
    time.sleep(_LOOK_S)
    after, own_s = _times(), time.process_time() - own_s
    known = [cpu for cpu in threads_of_all(cpus) if cpu in before and cpu in after]
    if not known:
        return None
    used_s = sum(after[cpu][0] - before[cpu][0] for cpu in known) - own_s
    use = Use(min(max(used_s / (_LOOK_S * len(known)), 0.0), 1.0))
    return use if use.is_quiet else Use(use.share, _busiest())


def _times() -> dict[int, tuple[float, float]]:
    with suppress(OSError):
        text = Path(PROC, "stat").read_text(encoding="ascii", errors="replace")
        return parse_cpu_times(text, nice=not _gives_way())
    return {}


def _gives_way() -> bool:
    """Whether niced processes give way to runs.

    They do not where the kernel shares the cores between sessions first: a niceness then counts within its session only
    (sched(7), "The autogroup feature"), and each run has a session of its own.
    """
    with suppress(OSError):
        return Path(PROC, "sys", "kernel", "sched_autogroup_enabled").read_bytes().strip() != b"1"
    return True


def _busiest() -> str:
    """Return the pid and name of the process that uses most CPU time, except this one; empty if none uses any."""
    before = _ticks()
    time.sleep(_LOOK_S)
    used = {pid: ticks - before[pid] for pid, ticks in _ticks().items() if pid in before and pid != os.getpid()}
    pid = max(used, key=lambda one: used[one], default=None)
    if pid is None or not used[pid]:
        return ""
    with suppress(OSError):
        return f"{pid} {Path(PROC, str(pid), 'comm').read_text(encoding='utf-8', errors='replace').strip()}"
    return str(pid)


def _ticks() -> dict[int, int]:
    nice = not _gives_way()
    return {pid: cpu_ticks(pid, nice=nice) for pid in map(int, filter(str.isdigit, os.listdir(PROC)))}  # noqa: PTH208


@dataclass
class QuietMachine:
    """This machine, which comparisons wait for.

    Attributes:
        cpus: CPUs of the runs.
        patience_s: Seconds that all waits of a session may take together.
        look: Measures the use by others.
        pause: Sleeps.
    """

    cpus: Collection[int]
    patience_s: float
    look: Callable[[Collection[int]], Use | None] = use_by_others
    pause: Callable[[float], None] = time.sleep
    _waited_s: float = field(default=0.0, init=False)

    @classmethod
    def of(cls, cpus: Collection[int], section: NoiseSection, mode: NoiseMode) -> Self | None:
        """Return the machine that comparisons wait for; None if all runs count."""
        return None if mode == "accept" else cls(cpus, section.wait_s if mode == "wait" else 0.0)

    def wait(self, display: Display, check: Callable[[], None], at_most_s: float = inf) -> tuple[float, Use]:
        """Wait until others use little of the machine, or for too long; return the seconds waited, and the use then.

        Args:
            display: Shows that the session waits, and how long it does at most.
            check: May end the wait by an error.
            at_most_s: Longest wait in seconds, if that is less than what is left of the session's patience.
        """
        waited_s, most_s = 0.0, min(at_most_s, self.patience_s - self._waited_s)
        while True:
            use = self.look(self.cpus) or Use(0.0)
            if use.is_quiet or waited_s >= most_s:
                break
            if not waited_s:
                display.waits(
                    f"waiting for a quiet machine, {duration(most_s)} at most (--noise accept: never): {use.words()}"
                )
            check()
            self.pause(_PAUSE_S)
            self._waited_s += _PAUSE_S
            waited_s += _PAUSE_S
        if waited_s and use.is_quiet:
            display.line("others use little of the machine now: resuming")
        return waited_s, use
