"""Outcome: how a run ended, as it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from autotune.records.stored import Stored
from launchers import Usage
from launchers.meters.figures import read_figures
from launchers.noise.disturbance import Disturbance
from objectives.base import REMARK, Answer, FailureKind

SHARED_CORES = "shared-cores"
"""The code of a run that was bound to the same cores as another run, which disturbed it."""

DISTURBED = "disturbed"
"""The code of a run that other processes on its machine disturbed."""

ANOTHER_PACE = "another-pace"
"""The code of a run from a time when the machine was much slower or much faster than now."""

MEASURED = "measured"
"""The detail with the metrics of a disturbed run, which show how much others affect a value."""


@dataclass(frozen=True)
class Outcome(Stored):
    """The end of a run: a measurement, a typed failure, or a bound.

    Attributes:
        metrics: The values of a complete run, by name.
        failure: The kind of a failure.
        bound: The target metric would not have been better than this: the run was stopped because it had lost.
        code: A word for the failure or the bound.
        message: The reason in words.
        answer: The result that the run computed.
        details: Further data of the objective.
        unused: The parameters that had no effect, according to the program.
        timeline: The progress of the run as pairs of a step and the elapsed seconds.
        conditions: The host's state at the start, the job's CPUs (`launchers.job.Affinity`), the `disturbance` by
            others, and the figures of meters (`metered`).
        usage: The resource usage of the last launch's whole job, including the start of its ranks.
        attempts: The number of launches; more than 1 only after infrastructure errors.
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
        """Refuse an outcome without exactly one of metrics, failure and bound."""
        if [self.failure is not None, bool(self.metrics), self.bound is not None].count(True) != 1:
            msg = (
                f"an outcome has metrics, a failure or a bound, got {dict(self.metrics)}, {self.failure}, {self.bound}"
            )
            raise ValueError(msg)

    @property
    def complete(self) -> bool:
        """Whether the run gave a valid measurement."""
        return bool(self.metrics)

    @cached_property
    def disturbance(self) -> Disturbance:
        """The other activity of the machine during the run, as far as it is known."""
        return Disturbance.from_figures(self.conditions)

    @property
    def remark(self) -> str:
        """The run's remark for the user; empty without one."""
        return str(self.details.get(REMARK, ""))

    @property
    def metered(self) -> Mapping[str, float]:
        """The figures of meters: the run's energy, and the use of cards (`launchers.meters.figures.UNITS`)."""
        return read_figures(self.conditions)

    @property
    def capped(self) -> bool:
        """Whether the run was stopped because it had already lost."""
        return self.bound is not None

    @property
    def retryable(self) -> bool:
        """Whether to run the configuration again, because the failure was not its fault."""
        return self.failure is FailureKind.INFRASTRUCTURE_ERROR

    @property
    def disturbed(self) -> bool:
        """Whether the run does not count, because another run or other processes disturbed it."""
        return self.code in {SHARED_CORES, DISTURBED, ANOTHER_PACE}

    @property
    def measured(self) -> Mapping[str, float]:
        """The run's metrics, also those of a run that does not count."""
        return self.metrics or self.details.get(MEASURED, {})

    def set_aside(self, code: str, message: str) -> Self:
        """Return the outcome as an infrastructure error, which does not count; keep its metrics in the details."""
        details = {**self.details, **({MEASURED: dict(self.metrics)} if self.complete else {})}
        failure = FailureKind.INFRASTRUCTURE_ERROR
        return replace(
            self,
            metrics={},
            answer=None,
            bound=None,
            failure=failure,
            code=code,
            message=message,
            details=details,
        )

    @property
    def over_memory_limit(self) -> bool:
        """Whether the run was stopped at a memory limit; it may work under another limit."""
        return self.failure is FailureKind.OUT_OF_MEMORY and self.code.endswith("memory-limit")
