"""Limit: the range that a metric of the winner must keep.

A run that breaks a limit is still a valid measurement: the value of its configuration is known, but it cannot win.
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
"""The metrics of a whole job, which are measured for every launched run of any objective."""


@dataclass(frozen=True)
class Limit:
    """The lowest and the highest value that a metric may have, in its unit; each may be infinite."""

    metric: Metric
    low: float = -inf
    high: float = inf

    @property
    def scale(self) -> float:
        """The magnitude of the limit, by which excesses of metrics in different units are compared."""
        return max((abs(end) for end in (self.low, self.high) if abs(end) != inf), default=0.0) or 1.0

    def allows(self, value: float) -> bool:
        """Whether a value keeps the limit."""
        return self.low <= value <= self.high

    def excess(self, value: float) -> float:
        """Return how far a value is beyond the limit, as a relative distance; 0 if it keeps the limit."""
        if self.allows(value):
            return 0.0
        end = self.high if value > self.high else self.low
        if value > 0.0 and end > 0.0:
            return abs(log(value / end))
        return abs(value - end) / self.scale

    def __str__(self) -> str:
        """Return the limit as text: `p99_ms <= 20`."""
        if self.low == -inf:
            return f"{self.metric.name} <= {_value_text(self.high, self.metric)}"
        if self.high == inf:
            return f"{self.metric.name} >= {_value_text(self.low, self.metric)}"
        return f"{_value_text(self.low, self.metric)} <= {self.metric.name} <= {_value_text(self.high, self.metric)}"


def _value_text(value: float, metric: Metric) -> str:
    """Return a value as text, bytes in the units of limits."""
    power = next((power for power in (3, 2) if abs(value) >= 1024.0**power), 0)
    if metric.unit in {"B", "byte", "bytes"} and power:
        return f"{value / 1024.0**power:.4g} {('MiB', 'GiB')[power - 2]}"
    return quantity(value, metric)


Limits = tuple[Limit, ...]


@dataclass(frozen=True)
class Breach:
    """A broken limit, and the value that breaks it; None if the metric was not measured."""

    limit: Limit
    value: float | None

    @property
    def excess(self) -> float:
        """How far the value is beyond the limit, as a relative distance."""
        return inf if self.value is None else self.limit.excess(self.value)

    def __str__(self) -> str:
        """Return the breach as text: `p99_ms <= 20: 31`."""
        return f"{self.limit}: {'not measured' if self.value is None else _value_text(self.value, self.limit.metric)}"


def metrics_of_run(outcome: Outcome) -> Mapping[str, float]:
    """Return the metrics of a complete run and of its job; the objective's metrics win where names coincide."""
    if not outcome.complete:
        return {}
    return {**job_metrics(outcome.usage, outcome.metered), **outcome.metrics}


def breaches(limits: Limits, metrics: Mapping[str, float]) -> tuple[Breach, ...]:
    """Return the limits that metrics, by name, break."""
    values = [(limit, metrics.get(limit.metric.name)) for limit in limits]
    return tuple(Breach(limit, value) for limit, value in values if value is None or not limit.allows(value))


def breaks(broken: Sequence[Breach]) -> str:
    """Return the breaches as text: `breaks p99_ms <= 20: 31`; empty without breaches."""
    return f"breaks {', '.join(map(str, broken))}" if broken else ""
