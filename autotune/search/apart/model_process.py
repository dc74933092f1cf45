"""The process of a model, as its session sees it: orders go in, plans come out, and the session goes on meanwhile.

A fit takes as long as a hundred answers. In the process of a service it would hold Python's lock, and with it every
other study, the page, and the results that clients tell.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from autotune.search.base import Proposer
from autotune.search.batch_proposals import BatchProposals, PlanOrder
from autotune.search.gp_sampler import ValidSetSampler
from spaces import Space

_WORKER = "autotune.search.apart.worker"
# Results are stored and runs are handed out first, where there are too few cores for both.
_NICENESS = 5
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class ModelProcess:
    """Makes plans for one space, one at a time. The process starts with the first order, and ends with the context.

    It also ends when this process does, however that ends: it sees the connection close.
    """

    def __init__(self, space: Space) -> None:
        """Start nothing yet."""
        self._space = space
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._busy = False
        self.is_warm = False
        """Whether it has answered: before, it still loads its libraries."""
        self.is_lost = False
        """Whether it has ended by itself; it is not started again."""

    def __enter__(self) -> Self:
        """Be ready for orders."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def begin(self, order: PlanOrder) -> bool:
        """Order a plan; False if one is being made, or none can be."""
        if self._busy or self.is_lost:
            return False
        try:
            if self._connection is None:
                self._connection = self._started()
                self._connection.send(self._space)
            self._connection.send(order)
            self._busy = True
        except OSError:
            self.is_lost = True
        return self._busy

    def finished(self) -> BatchProposals | None:
        """Return the plan that was ordered, if it is made and was not returned yet."""
        return self._received() if self._busy and self._has_answer() else None

    def wait(self) -> BatchProposals | None:
        """Wait for the plan that was ordered; None if there is nothing to make one of, or the process has ended."""
        return self._received() if self._busy else None

    def _has_answer(self) -> bool:
        assert self._connection is not None
        try:
            return self._connection.poll()
        except OSError:
            return True  # receiving says what is wrong

    def _received(self) -> BatchProposals | None:
        assert self._connection is not None
        self._busy = False
        plan: BatchProposals | None = None
        try:
            plan = self._connection.recv()
            self.is_warm = True
        except (EOFError, OSError):
            self.is_lost = True
        return plan

    def _started(self) -> Connection:
        here, there = Pipe()
        paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _WORKER, str(there.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
                pass_fds=[there.fileno()],
                process_group=0,  # Ctrl-C is for the session, which ends it
            )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS)
        return here


@contextmanager
def planned_apart(sampler: Proposer) -> Iterator[None]:
    """Let a sampler that plans for a crowd do so in a process of its own, which starts with the crowd."""
    if not isinstance(sampler, ValidSetSampler):
        yield
        return
    with ModelProcess(sampler.space) as process:
        sampler.plan_apart(process)
        yield
