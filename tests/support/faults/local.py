"""An executor without processes, which makes runs inside the coordinator."""

from collections.abc import Sequence

from autotune.execution.executor import Executor
from autotune.execution.task import Task, WatchedRun
from autotune.records.outcome import Outcome
from tests.support.faults.recorded import made


class LocalExecutor(Executor):
    """Make each run when the session waits for it."""

    def __init__(self, launcher: object) -> None:
        self._running: list[Task] = []

    def submit(self, task: Task) -> None:
        """Queue a task."""
        self._running.append(task)

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the task that ends next."""
        if not self._running:
            return []
        task = self._running.pop(0)
        watched = WatchedRun(task)
        return [(task, watched.outcome(made(task.job.folder, int(task.job.argv[-1]))))]

    def cancel_all(self) -> None:
        """Stop all."""
        self._running.clear()

    def leave(self) -> None:
        """Stop all."""
        self._running.clear()
