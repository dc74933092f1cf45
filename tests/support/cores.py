"""Share the cores of this machine between test files that run studies.

A study claims every core that its process may use. A test file marked `pytest.mark.cores(1)` gets one core, so two of
them run side by side on two cores. A file marked `pytest.mark.cores` gets all cores to itself.
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
    """How many cores a test file reserves."""

    NONE = "none"
    ONE = "one core"
    ALL = "all cores"


def wanted(file: Path) -> Wanted:
    """Read the marks in the text of a file: the xdist controller knows only the names of tests."""
    marks = _MARK.findall(_text(file))
    if not marks:
        return Wanted.NONE
    return Wanted.ONE if all(marks) else Wanted.ALL


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


class Cores:
    """The cores that this process reserves for its current test file."""

    def __init__(self, folder: Path) -> None:
        """Lock cores by files in a folder that all test processes share."""
        self._folder = folder
        self._file: Path | None = None
        self._locks: list[int] = []
        self._usable: set[int] | None = None

    def take(self, file: Path) -> None:
        """Wait for the cores of a test file, and confine this process and its children to them."""
        if file == self._file:
            return
        self.give_back()
        self._file = file
        cpus = this_machine().cpus
        if wanted(file) is Wanted.ALL:
            # In order, so that two processes that want all cores cannot deadlock.
            self._locks = [self._lock(cpu) for cpu in cpus]
        elif wanted(file) is Wanted.ONE:
            cpu, lock = self._lock_any(cpus)
            self._locks = [lock]
            self._usable = os.sched_getaffinity(0)
            _use({cpu})

    def give_back(self) -> None:
        """Release the locks and restore the affinity of this process."""
        if self._usable is not None:
            _use(self._usable)
        for lock in self._locks:
            # Closing is not enough: a process forked by a test may hold the file, too.
            fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)
        self._file, self._locks, self._usable = None, [], None

    def _lock_any(self, cpus: Sequence[int]) -> tuple[int, int]:
        """Lock one of these cores, and return it with its lock. If all are taken, each worker waits for another one."""
        for cpu in cpus:
            with suppress(BlockingIOError):
                return cpu, self._lock(cpu, fcntl.LOCK_NB)
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
        cpu = cpus[worker % len(cpus)]
        return cpu, self._lock(cpu)

    def _lock(self, cpu: int, flags: int = 0) -> int:
        """Lock a core against other test processes, and return the descriptor that holds the lock."""
        lock = os.open(self._folder / f"test{cpu}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | flags)
        except BaseException:
            os.close(lock)
            raise
        return lock


def _use(cpus: set[int]) -> None:
    # Threads of libraries, too.
    for thread in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread.name), cpus)
    this_machine.cache_clear()


class Files(LoadFileScheduling):
    """Run tests of different files side by side (`pytest -n 2`).

    All files that take every core are a single unit of work, which goes first, beside files that take no core. Then
    files that take one core follow, never more at a time than there are cores, so that no worker waits. Slow files go
    first, so that the last ones are short.
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
        """Return the rank of a unit of work: the least goes first, and among equals the one with the most tests."""
        everything = scope == Wanted.ALL.value
        takes_one = not everything and self._wanted(scope) is Wanted.ONE
        return not everything, takes_one is not is_core_free, everything or not self._is_slow(scope)

    def _is_core_free(self, node: object) -> bool:
        """Whether the work of all nodes but `node` leaves a core free; `node` itself has nearly finished."""
        others = [work for other, work in self.assigned_work.items() if other is not node]
        busy = [scope for work in others for scope, tests in work.items() if not all(tests.values())]
        if Wanted.ALL.value in busy:
            return False
        return sum(self._wanted(scope) is Wanted.ONE for scope in busy) < len(this_machine().cpus)

    def _wanted(self, file: str) -> Wanted:
        return wanted(self.config.rootpath / file)

    def _is_slow(self, file: str) -> bool:
        return _SLOW.search(_text(self.config.rootpath / file)) is not None
