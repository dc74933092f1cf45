"""Repeats of one configuration as one measurement: their median, or a bound of it."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from objectives.base import Metric


@dataclass(frozen=True)
class RepeatedMeasurement:
    """A value, a bound that the value was not better than, or, with neither, a failure; it stands for `runs` runs."""

    value: float | None = None
    bound: float | None = None
    runs: int = 1
    failure: str = ""

    @property
    def failed(self) -> bool:
        """Whether there is neither a value nor a bound."""
        return self.value is None and self.bound is None


def aggregate(samples: Sequence[RepeatedMeasurement], metric: Metric) -> RepeatedMeasurement:
    """Return the samples of one configuration as one: a failure if half of the runs failed, or more.

    Otherwise it is the median of the values. A bound stands for any value from there on: if the median depends on
    that value, only a bound of the median is known.

    Raises:
        ValueError: there is no sample.
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
    # A cost is its own inverse: the sign is changed or not.
    value = metric.cost(least)
    return RepeatedMeasurement(value, runs=runs) if least == most else RepeatedMeasurement(bound=value, runs=runs)


def weighted_median(weighted: Iterable[tuple[float, int]]) -> float:
    """Return the median of (value, weight) pairs; the mean of the two middle values if they differ."""
    ordered = sorted(weighted)
    total = sum(weight for _, weight in ordered)
    low, high = _at(ordered, (total - 1) // 2), _at(ordered, total // 2)
    return low if low == high else (low + high) / 2


def _at(ordered: Sequence[tuple[float, int]], index: int) -> float:
    """Return the value at an index, from 0, of the sequence with repeats."""
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
