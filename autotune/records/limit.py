"""Limit: what a metric of the winner must not go beyond.

A run that breaks a limit is a good measurement. What its configuration is worth is known; it cannot win.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log

from autotune.formatting import quantity
from autotune.records.outcome import Outcome
from objectives.base import Metric
from objectives.job_metrics import METERED, USED, job_metrics

PEAK_MEMORY = next(metric for metric in USED if metric.name == "peak_memory_bytes")
OF_EVERY_RUN = (*USED, *METERED)
"""What is measured of every run that is launched here, whatever its objective: that of its whole job."""


@dataclass(frozen=True)
class Limit:
    """The least and the greatest value that a metric may have, both in its unit; either may be infinite."""

    metric: Metric
    low: float = -inf
    high: float = inf

    @property
    def scale(self) -> float:
        """What makes values of any unit comparable with one another: how great the values at the limit are."""
        return max((abs(end) for end in (self.low, self.high) if abs(end) != inf), default=0.0) or 1.0

    def allows(self, value: float) -> bool:
        """Whether a value keeps the limit."""
        return self.low <= value <= self.high

    def excess(self, value: float) -> float:
        """Return how far beyond the limit a value is, relatively: 0 if it keeps it."""
        if self.allows(value):
            return 0.0
        end = self.high if value > self.high else self.low
        if value > 0.0 and end > 0.0:
            return abs(log(value / end))
        return abs(value - end) / self.scale

    def __str__(self) -> str:
        """Return the limit for reading: `p99_ms <= 20`."""
        if self.low == -inf:
            return f"{self.metric.name} <= {_written(self.high, self.metric)}"
        if self.high == inf:
            return f"{self.metric.name} >= {_written(self.low, self.metric)}"
        return f"{_written(self.low, self.metric)} <= {self.metric.name} <= {_written(self.high, self.metric)}"


def _written(value: float, metric: Metric) -> str:
    """Return a value for reading; bytes as limits are written."""
    power = next((power for power in (3, 2) if abs(value) >= 1024.0**power), 0)
    if metric.unit in {"B", "byte", "bytes"} and power:
        return f"{value / 1024.0**power:.4g} {('MiB', 'GiB')[power - 2]}"
    return quantity(value, metric)


Limits = tuple[Limit, ...]


@dataclass(frozen=True)
class Breach:
    """A limit that is broken, and the value that breaks it; None where it was not measured."""

    limit: Limit
    value: float | None

    @property
    def excess(self) -> float:
        """How far beyond the limit it is, relatively."""
        return inf if self.value is None else self.limit.excess(self.value)

    def __str__(self) -> str:
        """Return it for reading: `p99_ms <= 20: 31`."""
        return f"{self.limit}: {'not measured' if self.value is None else _written(self.value, self.limit.metric)}"


def metrics_of_run(outcome: Outcome) -> Mapping[str, float]:
    """Return the metrics of a complete run, with what is measured of every run; the objective's own come first."""
    if not outcome.complete:
        return {}
    return {**job_metrics(outcome.usage, outcome.metered), **outcome.metrics}


def breaches(limits: Limits, metrics: Mapping[str, float]) -> tuple[Breach, ...]:
    """Return the limits that these values break, by the metrics' names."""
    values = [(limit, metrics.get(limit.metric.name)) for limit in limits]
    return tuple(Breach(limit, value) for limit, value in values if value is None or not limit.allows(value))


def breaks(broken: Sequence[Breach]) -> str:
    """Say what is broken: `breaks p99_ms <= 20: 31`; nothing if nothing is."""
    return f"breaks {', '.join(map(str, broken))}" if broken else ""
