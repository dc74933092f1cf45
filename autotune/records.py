"""What storage holds of a study: its definition, and a record of each trial."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self

from autotune.outcome import Outcome
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class Definition:
    """What a study is about. Two sessions belong to the same study only if `differences` finds none.

    `space` is `Space.to_dict()`; `identity` says what makes measurements comparable (input, program version);
    `machine` is where they were made. All of it is JSON-able.
    """

    objective: str
    options: Mapping[str, Any]
    metrics: tuple[Metric, ...]
    space: Mapping[str, Any]
    identity: Mapping[str, str]
    facts: Mapping[str, Any]
    machine: Mapping[str, Any]
    machine_identity: Mapping[str, str]
    version: str

    @property
    def target(self) -> Metric:
        """The metric that is optimised."""
        return self.metrics[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form that is stored."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Read the stored form."""
        metrics = tuple(Metric(**metric) for metric in stored["metrics"])
        return cls(**{**stored, "metrics": metrics})

    def differences(self, other: Self) -> list[str]:
        """Say what keeps measurements of `other` from being compared with ours."""
        found = []
        if self.objective != other.objective:
            found.append(f"objective: {self.objective} there, {other.objective} here")
        for title, mine, theirs in (
            ("", self.identity, other.identity),
            ("machine ", self.machine_identity, other.machine_identity),
        ):
            found.extend(
                f"{title}{key}: {mine.get(key)} there, {theirs.get(key)} here"
                for key in sorted({*mine, *theirs})
                if mine.get(key) != theirs.get(key)
            )
        if not found and self.space != other.space:
            found.append("the space: its parameters, values or constraints are others than before")
        return found


@dataclass(frozen=True)
class TrialRecord:
    """One trial. `outcome` is None while it runs; `job` is the stored command of its run, None before its launch."""

    number: int
    configuration: Configuration
    outcome: Outcome | None = None
    job: Mapping[str, Any] | None = None
    started: datetime | None = None
    ended: datetime | None = None

    @property
    def complete(self) -> bool:
        """Whether the trial gave a valid measurement."""
        return self.outcome is not None and self.outcome.failure is None

    def value(self, metric: Metric) -> float:
        """Return the measured value of `metric` of a complete trial."""
        if self.outcome is None or not self.complete:
            msg = f"trial {self.number} has no measurement"
            raise ValueError(msg)
        return self.outcome.metrics[metric.name]


def incumbent(trials: list[TrialRecord], metric: Metric) -> TrialRecord | None:
    """Return the best complete trial; of equals the earliest."""
    complete = [trial for trial in trials if trial.complete]
    sign = -1.0 if metric.direction == "maximize" else 1.0
    return min(complete, key=lambda trial: (sign * trial.value(metric), trial.number), default=None)


def default_trial(trials: list[TrialRecord]) -> TrialRecord | None:
    """Return the trial of the default configuration, which is proposed first.

    Not always number 0: one that was killed before its launch leaves its number unused.
    """
    return min(trials, key=lambda trial: trial.number, default=None)


def baseline(trials: list[TrialRecord]) -> TrialRecord | None:
    """Return the trial of the default configuration if it gave a measurement."""
    first = default_trial(trials)
    return first if first is not None and first.complete else None


def speed_up(value: float, reference: float, metric: Metric) -> float:
    """Return how many times better `value` is than `reference`: above 1 is better in either direction."""
    return value / reference if metric.direction == "maximize" else reference / value
