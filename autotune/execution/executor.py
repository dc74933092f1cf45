"""The executor seam: what makes the runs of a session while the coordinator goes on.

Processes of this machine, the nodes of a Ray cluster, the jobs of a batch system, recorded measurements, and other
programs that ask for runs all stand behind it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from autotune.execution.task import Task
from autotune.records.outcome import Outcome


class Executor(Protocol):
    """Runs tasks side by side, each on the cores of its job.

    An executor must have the first four methods; the others are for runs that outlive the session or that others make.
    """

    def submit(self, task: Task) -> None:
        """Start a task."""

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""

    def cancel_all(self) -> None:
        """Stop all running tasks and their jobs; nothing is reported of them."""

    def leave(self) -> None:
        """Forget all running tasks; jobs that can do without this process go on."""

    def max_in_flight(self, most: int, in_flight: int) -> int:
        """Return how many runs may be in flight, when `in_flight` are: `most`, unless runs are made on demand."""
        del in_flight
        return most

    def max_starts(self, room: int) -> int:
        """Return how many runs are started together where there is `room` for so many."""
        return min(room, 1)

    def why_waits(self, run: str) -> str:
        """Return why a run that was submitted does not run yet; empty if it does."""
        del run
        return ""

    def made_with(self, job: Mapping[str, Any], outcome: Outcome) -> Mapping[str, Any]:
        """Return the description of the job that made a run which ended: `job`, unless another program made it."""
        del outcome
        return job

    def find_job(self, folder: Path) -> str | None:
        """Return the job that was submitted last in the folder of a run, also by an earlier session."""
        del folder
        return None

    def end_jobs(self, job_ids: Sequence[str]) -> None:
        """End jobs of an earlier session that are not resumed."""
        del job_ids
