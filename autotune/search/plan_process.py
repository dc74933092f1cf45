"""Make plans in a process of its own, while the session continues.

A fit takes as long as a hundred answers. In the process of a service it would hold Python's global lock, and with it
every other study, the page, and the results that clients report.
"""

import os
import subprocess
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
from launchers.own_python import own_python
from spaces import Space

_WORKER = "autotune.search.plan_worker"
# If there are too few cores, storing results and handing out runs come first.
_NICENESS = 5
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class PlanProcess:
    """A process that makes plans for a space, one at a time; a context manager.

    The process starts with the first order and ends with the context. It also ends whenever this process ends, since it
    sees the connection close.
    """

    def __init__(self, space: Space) -> None:
        """Prepare; the process starts with the first order."""
        self._space = space
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._busy = False
        self.is_warm = False
        """Whether it has answered already; before that, it is still loading its libraries."""
        self.is_lost = False
        """Whether it has ended unexpectedly; it is not started again."""

    def __enter__(self) -> Self:
        """Return the process, ready for orders."""
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
        """Order a plan; return False if another is being made, or if the process is lost."""
        if self._busy or self.is_lost:
            return False
        try:
            if self._connection is None:
                self._connection = self._start()
                self._connection.send(self._space)
            self._connection.send(order)
            self._busy = True
        except OSError:
            self.is_lost = True
        return self._busy

    def take_finished_plan(self) -> BatchProposals | None:
        """Return the ordered plan once, when it is made."""
        return self._receive() if self._busy and self._has_answer() else None

    def wait(self) -> BatchProposals | None:
        """Wait for the ordered plan; None if no plan is ordered or possible, or if the process has ended."""
        return self._receive() if self._busy else None

    def _has_answer(self) -> bool:
        assert self._connection is not None
        try:
            return self._connection.poll()
        except OSError:
            return True  # receiving will then raise the error

    def _receive(self) -> BatchProposals | None:
        assert self._connection is not None
        self._busy = False
        plan: BatchProposals | None = None
        try:
            plan = self._connection.recv()
            self.is_warm = True
        except (EOFError, OSError):
            self.is_lost = True
        return plan

    def _start(self) -> Connection:
        here, there = Pipe()
        paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        with there:
            self._process = subprocess.Popen(
                own_python(_WORKER, str(there.fileno())),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=os.environ | _ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
                pass_fds=[there.fileno()],
                process_group=0,  # Ctrl-C must reach only the session, which then ends this process
            )
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _NICENESS)
        return here


@contextmanager
def plan_in_process(sampler: Proposer) -> Iterator[None]:
    """Let a sampler make its plans in a process of its own, which starts once many runs are in flight."""
    if not isinstance(sampler, ValidSetSampler):
        yield
        return
    with PlanProcess(sampler.space) as process:
        sampler.set_plan_maker(process)
        yield
