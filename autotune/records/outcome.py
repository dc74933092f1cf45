"""Outcome: how a run ended, as it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.records.stored import Stored
from launchers import Usage
from objectives.base import Answer, FailureKind


@dataclass(frozen=True)
class Outcome(Stored):
    """The end of a run: a measurement, a typed failure, or a bound.

    A run that was stopped because it had already lost has a `bound`: the target metric would not have been better than
    that. It is no value. `attempts` counts the launches that were needed: more than one only after infrastructure
    errors. `usage` is that of the last launch's whole job, start-up of the ranks included. `unused` are parameters
    that the program said to have had no effect; `timeline` are (step, elapsed_s) of its progress; `conditions` are
    what the host was like at the start, and which of its CPUs the job could use (`launchers.job.Affinity`).
    """

    metrics: Mapping[str, float] = field(default_factory=dict)
    failure: FailureKind | None = None
    bound: float | None = None
    code: str = ""
    message: str = ""
    answer: Answer | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    timeline: tuple[tuple[int, float], ...] = ()
    conditions: Mapping[str, float | str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    attempts: int = 1

    def __post_init__(self) -> None:
        """Refuse an outcome that is several of these or none."""
        if [self.failure is not None, bool(self.metrics), self.bound is not None].count(True) != 1:
            msg = (
                f"an outcome has metrics, a failure or a bound, got {dict(self.metrics)}, {self.failure}, {self.bound}"
            )
            raise ValueError(msg)

    @property
    def complete(self) -> bool:
        """Whether the run gave a valid measurement."""
        return bool(self.metrics)

    @property
    def capped(self) -> bool:
        """Whether the run was stopped because it had already lost."""
        return self.bound is not None

    @property
    def retryable(self) -> bool:
        """Whether the same configuration deserves another run: the failure was not its fault."""
        return self.failure is FailureKind.INFRASTRUCTURE_ERROR
