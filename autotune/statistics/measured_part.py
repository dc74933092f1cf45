"""The measured part: how many seconds of a run its metric is of, where runs told their steps.

A metric may be in any unit, and of the whole run or of its main part alone: many a program leaves its start out of its
rate. The metric is taken to be of the part to whose time it is in proportion in all runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, log, log1p
from statistics import median

from autotune.records.outcome import Outcome
from objectives.base import Metric

# A run whose metric is farther off its proportion was measured in another part, or disturbed.
_IN_PROPORTION = log1p(0.02)
# One run alone is in proportion to each of its parts.
_LEAST_RUNS = 2


@dataclass(frozen=True)
class _Part:
    """A part of each run, by its trial's number: its seconds, and how far off being in proportion the metric is."""

    seconds: Mapping[int, float]
    off: Mapping[int, float]

    @classmethod
    def of(cls, seconds: Mapping[int, float], costs: Mapping[int, float]) -> "_Part":
        ratios = {number: costs[number] - log(part_s) for number, part_s in seconds.items() if part_s > 0.0}
        middle = median(ratios.values()) if ratios else 0.0
        return cls(seconds, {number: abs(ratio - middle) for number, ratio in ratios.items()})

    @property
    def typically_off(self) -> float:
        return median(self.off.values()) if self.off else inf


def measured_parts_s(told: Mapping[int, Outcome], metric: Metric) -> Mapping[int, float]:
    """Return the seconds that the metric is of in complete runs that `told` steps, by the numbers of their trials.

    A metric in seconds says so. Any other is taken to be of whole runs, or of what follows the first step that they
    told, whichever it is rather in proportion to. A run that is not is left out, and so is one without another.
    """
    if metric.is_seconds:
        return {number: outcome.metrics[metric.name] for number, outcome in told.items()}
    if len(told) < _LEAST_RUNS:
        return {}
    costs = {number: metric.cost(log(outcome.metrics[metric.name])) for number, outcome in told.items()}
    whole_s = {number: outcome.usage.elapsed_s for number, outcome in told.items()}
    since_first_s = {number: whole_s[number] - outcome.timeline[0][1] for number, outcome in told.items()}
    parts = (_Part.of(whole_s, costs), _Part.of(since_first_s, costs))
    part = min(parts, key=lambda one: one.typically_off)
    return {number: part.seconds[number] for number, off in part.off.items() if off <= _IN_PROPORTION}
