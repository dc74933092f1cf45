"""Outcome: how a run ended, as it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from autotune.records.stored import Stored
from launchers import Usage
from launchers.meters.figures import read_figures
from launchers.noise.disturbance import Disturbance
from objectives.base import REMARK, Answer, FailureKind

SHARED_CORES = "shared-cores"
"""The code of a run that was bound to the same cores as another one: it measured that one, too."""

DISTURBED = "disturbed"
"""The code of a run that others on its machine have disturbed."""

ANOTHER_PACE = "another-pace"
"""The code of a run that was made while the machine was much slower, or much faster, than it is now."""

MEASURED = "measured"
"""The detail of a disturbed run that has what it measured nevertheless: it tells how much others move a value."""


@dataclass(frozen=True)
class Outcome(Stored):
    """The end of a run: a measurement, a typed failure, or a bound.

    A run that was stopped because it had already lost has a `bound`: the target metric would not have been better than
    that. It is no value. `attempts` counts the launches that were needed: more than one only after infrastructure
    errors. `usage` is that of the last launch's whole job, start-up of the ranks included. `unused` are parameters
    that the program said to have had no effect; `timeline` are (step, elapsed_s) of its progress; `conditions` are
    what the host was like at the start, which of its CPUs the job could use (`launchers.job.Affinity`), what others
    did there meanwhile (`disturbance`), and what meters told of the job (`metered`).
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
    def disturbance(self) -> Disturbance:
        """What else the machine did during the run, as far as that is known."""
        return Disturbance.from_figures(self.conditions)

    @property
    def remark(self) -> str:
        """What the run has to tell the person who watches, beside its value; empty if that is nothing."""
        return str(self.details.get(REMARK, ""))

    @property
    def metered(self) -> Mapping[str, float]:
        """What meters told of the run's energy and cards (`launchers.meters.figures.UNITS`)."""
        return read_figures(self.conditions)

    @property
    def capped(self) -> bool:
        """Whether the run was stopped because it had already lost."""
        return self.bound is not None

    @property
    def retryable(self) -> bool:
        """Whether the same configuration deserves another run: the failure was not its fault."""
        return self.failure is FailureKind.INFRASTRUCTURE_ERROR

    @property
    def disturbed(self) -> bool:
        """Whether the run was disturbed so much, by another run or by others, that it does not count."""
        return self.code in {SHARED_CORES, DISTURBED, ANOTHER_PACE}

    @property
    def measured(self) -> Mapping[str, float]:
        """What the run measured, also where that does not count."""
        return self.metrics or self.details.get(MEASURED, {})

    def set_aside(self, code: str, message: str) -> Self:
        """Return the outcome as one that does not count, for no fault of its configuration; values become details."""
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
        """Whether the run was stopped at a limit on memory: it may work where there is another limit, or none."""
        return self.failure is FailureKind.OUT_OF_MEMORY and self.code.endswith("memory-limit")
