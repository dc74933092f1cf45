"""The executor seam: making the runs of a session beside the coordinator.

Its implementations use processes of this machine, the nodes of a Ray cluster, jobs of a batch system, recorded
measurements, and other programs that ask for runs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from autotune.execution.task import Task
from autotune.records.outcome import Outcome


class Executor(Protocol):
    """Runs tasks side by side, each on the cores of its job.

    An executor must define the first four methods. The others are for runs that outlive the session, or that other
    programs make.
    """

    def submit(self, task: Task) -> None:
        """Start a task."""

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""

    def cancel_all(self) -> None:
        """Stop all running tasks and their jobs without reporting them."""

    def leave(self) -> None:
        """Forget all running tasks; jobs that do not need this process continue."""

    def max_in_flight(self, most: int, in_flight: int) -> int:
        """Return how many runs may be in flight: `most`, unless runs are made on demand, beside `in_flight` others."""
        del in_flight
        return most

    def max_starts(self, room: int) -> int:
        """Return how many runs to start at once if there is `room` for that many."""
        return min(room, 1)

    def why_waits(self, run: str) -> str:
        """Return why a submitted run does not run yet; empty if it runs."""
        del run
        return ""

    def made_with(self, job: Mapping[str, Any], outcome: Outcome) -> Mapping[str, Any]:
        """Return the description of an ended run's job: `job`, unless another program made the run."""
        del outcome
        return job

    def find_job(self, folder: Path) -> str | None:
        """Return the newest job in the folder of a run, also one of an earlier session."""
        del folder
        return None

    def end_jobs(self, job_ids: Sequence[str]) -> None:
        """End jobs of an earlier session that this one does not resume."""
        del job_ids
