"""The states of a run before it is stored: planned, then in flight. An ended run is a `records.study.Run`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from autotune.coordination.lease_record import LeaseRecord
from autotune.execution.segments import Curve
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.records.study import Purpose, Run


@dataclass(frozen=True)
class PlannedRun:
    """A run that is prepared and waits for its start.

    Attributes:
        task: The task to run.
        purpose: Why the run is made.
        lost: The curve of its earlier runs that were killed.
        inherited: Its lease, if an earlier session started it; the job is then resumed.
    """

    task: Task
    purpose: Purpose
    lost: Curve = ()
    inherited: LeaseRecord | None = None

    @property
    def name(self) -> str:
        """The name of the run's folder, its job and its lease."""
        return self.task.job.name


@dataclass(frozen=True)
class RunInFlight:
    """A run that was started.

    Attributes:
        planned: The run as planned.
        started: Start time in ISO 8601.
        job: Description of its job.
    """

    planned: PlannedRun
    started: str
    job: Mapping[str, Any]

    @property
    def task(self) -> Task:
        """The task, with the cores that it was given."""
        return self.planned.task

    @property
    def purpose(self) -> Purpose:
        """Why the run is made."""
        return self.planned.purpose

    @property
    def name(self) -> str:
        """The name of the run's folder, its job and its lease."""
        return self.planned.name

    def lease(self, scheduler: str) -> LeaseRecord:
        """Return the record to store while the run is in flight; `scheduler` is the batch system of its job, if any."""
        return LeaseRecord.of(self.task, self.purpose, self.job, self.started, scheduler)

    def run_to_store(self, outcome: Outcome, job: Mapping[str, Any], session: Mapping[str, str]) -> Run:
        """Return the run to store: it ended with `outcome`, and `job` made it."""
        purpose = self.purpose
        return Run(
            purpose.configuration,
            purpose.trial,
            purpose.series,
            purpose.round,
            purpose.block,
            purpose.steps,
            purpose.of,
            outcome=outcome,
            started=self.started,
            job=job,
            session=session,
        )
