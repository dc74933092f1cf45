"""The stored record of a run in flight, from which another process can collect the run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, Self

from autotune.execution.capping import Cap, OptimisticInput
from autotune.execution.segments import Segment
from autotune.execution.task import Task, job_from_description
from autotune.records.series import Series
from autotune.records.study import Purpose
from objectives.base import Answer, Metric, Objective


@dataclass(frozen=True)
class LeaseRecord:
    """A run in flight, as it is stored.

    A session that resumes the run computes its segment again. The cap is stored without the incumbent's pace, because
    the times of its output lines are not recorded.

    Attributes:
        purpose: Configuration, trial and series of the run.
        job: Description of its job.
        name: Name of its folder.
        time_limit_s: Time limit in seconds; None without one.
        started: Start time in ISO 8601.
        cap: Bound beyond which the run has lost.
        seed: Seed of the run.
        attempt: Number of this try.
        scheduler: Batch system that has the job; empty if the run ends with its tuner.
        walltime_s: Seconds that were expected to suffice, for the wall time of the job; None for that of the site.
    """

    purpose: Purpose
    job: Mapping[str, Any]
    name: str
    time_limit_s: float | None
    started: str
    cap: Cap | None
    seed: int
    attempt: int
    scheduler: str
    walltime_s: float | None = None

    @classmethod
    def of(cls, task: Task, purpose: Purpose, job: Mapping[str, Any], started: str, scheduler: str) -> Self:
        """Return the record of a run that starts now; `job` is its description."""
        cap = None if task.cap is None else replace(task.cap, pace=None)
        name, limit_s, walltime_s = task.job.name, task.job.time_limit_s, task.job.walltime_s
        walltime_s = None if walltime_s == inf else walltime_s
        return cls(purpose, job, name, limit_s, started, cap, task.seed, task.attempt, scheduler, walltime_s)

    def task(
        self, key: int, objective: Objective, *, reference: Answer | None = None, segment: Segment | None = None
    ) -> Task:
        """Return the task of the run, for a session that resumes it."""
        job = replace(
            job_from_description(self.job),
            name=self.name,
            time_limit_s=self.time_limit_s,
            walltime_s=self.walltime_s,
        )
        return Task(key, job, objective, reference, self.cap, segment, self.seed, self.attempt)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form that is stored."""
        purpose = asdict(self.purpose) | {"series": str(self.purpose.series)}
        return asdict(self) | {"purpose": purpose}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the stored form."""
        purpose, cap = stored["purpose"], stored["cap"]
        changes = {
            "purpose": Purpose(**{**purpose, "series": Series.parse(purpose["series"])}),
            "cap": _cap(cap) if cap else None,
        }
        return cls(**{**stored, **changes})


def _cap(stored: Mapping[str, Any]) -> Cap:
    inputs = tuple(OptimisticInput(**one) for one in stored["inputs"])
    return Cap(**{**stored, "metric": Metric(**stored["metric"]), "inputs": inputs})
