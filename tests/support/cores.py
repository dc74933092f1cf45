"""Which tests take cores of this machine, as a study does, and which cores those are.

A study claims every core that its process may use. The tests of a file marked `pytest.mark.cores(1)` may use one, so
that two such files go on side by side on two cores; those of a file marked `pytest.mark.cores` have all to themselves.
"""

import fcntl
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

from autotune.machines.this_machine import this_machine

_MARK = re.compile(r"pytest\.mark\.cores\b(\(1\))?")
_SLOW = re.compile(r"pytest\.mark\.(?:slow|full)\b")


class Wanted(Enum):
    """How many cores the tests of a file take for themselves."""

    NONE = "none"
    ONE = "one core"
    ALL = "all cores"


def wanted(file: Path) -> Wanted:
    """Return what a file says: the process that distributes tests knows no more of them than their names."""
    marks = _MARK.findall(_text(file))
    if not marks:
        return Wanted.NONE
    return Wanted.ONE if all(marks) else Wanted.ALL


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


class Cores:
    """The cores that the tests of one file after the other take in this process."""

    def __init__(self, folder: Path) -> None:
        """Lock cores by files in a folder that other processes with such tests use, too."""
        self._folder = folder
        self._file: Path | None = None
        self._locks: list[int] = []
        self._usable: set[int] | None = None

    def take(self, file: Path) -> None:
        """Wait for the cores that the tests of a file take; what they start may use no others."""
        if file == self._file:
            return
        self.give_back()
        self._file = file
        cpus = this_machine().cpus
        if wanted(file) is Wanted.ALL:
            # In order: two that want all do not wait for each other.
            self._locks = [self._lock(cpu) for cpu in cpus]
        elif wanted(file) is Wanted.ONE:
            cpu, lock = self._lock_any(cpus)
            self._locks = [lock]
            self._usable = os.sched_getaffinity(0)
            _use({cpu})

    def give_back(self) -> None:
        """Use again what this process may use."""
        if self._usable is not None:
            _use(self._usable)
        for lock in self._locks:
            # Not by closing it alone: what a test has forked may hold it, too.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)
        self._file, self._locks, self._usable = None, [], None

    def _lock_any(self, cpus: Sequence[int]) -> tuple[int, int]:
        """Lock one of these cores; return it and its lock. Where none is free, workers wait for different ones."""
        for cpu in cpus:
            with suppress(BlockingIOError):
                return cpu, self._lock(cpu, fcntl.LOCK_NB)
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        cpu = cpus[worker % len(cpus)]
        return cpu, self._lock(cpu)

    def _lock(self, cpu: int, flags: int = 0) -> int:
        """Lock a core against other tests, those of other workers among them; return what holds the lock."""
        lock = os.open(self._folder / f"test{cpu}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | flags)
        except BaseException:
            os.close(lock)
            raise
        return lock


def _use(cpus: set[int]) -> None:
    # Libraries keep their threads: those change, too.
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cpus)
    this_machine.cache_clear()


class Files(LoadFileScheduling):
    """Run tests of different files side by side (`pytest -n 2`).

    The files that take all cores are one piece of work, the first. Beside it go files that take none; then those that
    take a core, as many at a time as there are cores, so that nobody waits. Slow ones come first: what is left at the
    end is short.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return Wanted.ALL.value if self._wanted(file) is Wanted.ALL else file

    def _assign_work_unit(self, node: object) -> None:
        is_core_free = self._is_core_free(node)
        wanted_now = min(self.workqueue, key=lambda scope: self._rank(scope, is_core_free=is_core_free))
        self.workqueue.move_to_end(wanted_now, last=False)
        super()._assign_work_unit(node)

    def _rank(self, scope: str, *, is_core_free: bool) -> tuple[bool, bool, bool]:
        """Return how early a piece of work is wanted now: the least first, and among equals the one of most tests."""
        everything = scope == Wanted.ALL.value
        takes_one = not everything and self._wanted(scope) is Wanted.ONE
        return not everything, takes_one is not is_core_free, everything or not self._is_slow(scope)

    def _is_core_free(self, node: object) -> bool:
        """Whether the pieces that others than `node` are at, which has nearly done its own, leave it a core."""
        others = [work for other, work in self.assigned_work.items() if other is not node]
        busy = [scope for work in others for scope, tests in work.items() if not all(tests.values())]
        if Wanted.ALL.value in busy:
            return False
        return sum(self._wanted(scope) is Wanted.ONE for scope in busy) < len(this_machine().cpus)

    def _wanted(self, file: str) -> Wanted:
        return wanted(self.config.rootpath / file)

    def _is_slow(self, file: str) -> bool:
        return _SLOW.search(_text(self.config.rootpath / file)) is not None
