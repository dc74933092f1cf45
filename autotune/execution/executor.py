"""The executor seam: where tasks run while the coordinator goes on."""

from collections.abc import Sequence
from typing import Protocol

from autotune.execution.task import Task
from autotune.records.outcome import Outcome


class Executor(Protocol):
    """Runs tasks side by side, each on the cores of its job."""

    def submit(self, task: Task) -> None:
        """Start a task."""

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""

    def cancel_all(self) -> None:
        """Stop all running tasks and their jobs; nothing is reported of them."""

    def leave(self) -> None:
        """Forget all running tasks; jobs that can do without this process go on."""
