"""Aggregate repeats of one configuration into one measurement: their median, or a bound of it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from autotune.records.measurement import Measured, Setting
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class RepeatedMeasurement:
    """A value, a bound that the value was not better than, or, with neither, a failure.

    Attributes:
        value: The value.
        bound: The bound.
        runs: The number of runs that it stands for.
        failure: The error message of a failure.
        parts: The wall-clock seconds of the program's parts in one run.
    """

    value: float | None = None
    bound: float | None = None
    runs: int = 1
    failure: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether there is neither a value nor a bound."""
        return self.value is None and self.bound is None

    def measurement_of(self, setting: Setting, configuration: Configuration) -> Measured:
        """Return the measurement of a configuration in a setting."""
        return Measured(setting, configuration, self.value, self.bound, self.runs, self.failure, parts=self.parts)


def aggregate(samples: Sequence[RepeatedMeasurement], metric: Metric) -> RepeatedMeasurement:
    """Combine the samples of one configuration.

    If half of the runs or more failed, the result is a failure. Otherwise it is the median of the values, with the
    parts of the run nearest to it. The value behind a bound may be anything that is not better, so if the median
    depends on such a value, the result is a bound.

    Raises:
        ValueError: There is no sample.
    """
    if not samples:
        msg = "no sample to aggregate"
        raise ValueError(msg)
    runs = sum(sample.runs for sample in samples)
    failed = [sample for sample in samples if sample.failed]
    if failed and 2 * sum(sample.runs for sample in failed) >= runs:
        return RepeatedMeasurement(runs=runs, failure=failed[-1].failure)
    known = [sample for sample in samples if not sample.failed]
    runs = sum(sample.runs for sample in known)
    least = weighted_median((_cost(sample, metric, metric.cost), sample.runs) for sample in known)
    most = weighted_median((_cost(sample, metric, lambda _: math.inf), sample.runs) for sample in known)
    # `cost` changes the sign or not, so applying it again gives the value back.
    value = metric.cost(least)
    if least != most:
        return RepeatedMeasurement(bound=value, runs=runs)
    return RepeatedMeasurement(value, runs=runs, parts=nearest_parts(value, ((one.value, one.parts) for one in known)))


def nearest_parts(value: float, runs: Iterable[tuple[float | None, Mapping[str, float]]]) -> Mapping[str, float]:
    """Return the parts of the run whose value is nearest to `value`, among runs with parts."""
    distances = [(abs(own - value), parts) for own, parts in runs if own is not None and parts]
    return min(distances, key=itemgetter(0))[1] if distances else {}


def weighted_median(weighted: Iterable[tuple[float, int]]) -> float:
    """Return the median of (value, weight) pairs; the mean of the two middle values if they differ."""
    ordered = sorted(weighted)
    total = sum(weight for _, weight in ordered)
    low, high = _at(ordered, (total - 1) // 2), _at(ordered, total // 2)
    return low if low == high else (low + high) / 2


def _at(ordered: Sequence[tuple[float, int]], index: int) -> float:
    """Return the value at an index, from 0, of the sequence in which each value is repeated by its weight."""
    for value, weight in ordered:
        index -= weight
        if index < 0:
            return value
    msg = f"no value at place {index}"
    raise ValueError(msg)


def _cost(sample: RepeatedMeasurement, metric: Metric, of_bound: Callable[[float], float]) -> float:
    if sample.value is not None:
        return metric.cost(sample.value)
    assert sample.bound is not None
    return of_bound(sample.bound)
