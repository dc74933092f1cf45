"""Slowdown: how much longer a configuration takes beside the other one of a duet than alone.

The two share caches, memory bandwidth and the power of the processor: where that decides, a duet measures something
else than runs alone. What others took from a run is left out: that is the machine's noise, and not the duet's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log, log1p, sqrt
from statistics import fmean, variance

from autotune.comparison.blocks import BlockTable
from autotune.records.outcome import Outcome
from objectives.base import Metric

LEAST_RUNS = 3
"""With fewer nobody knows how much the runs differ anyway."""
# Of the two sides together: each is found to be slower by chance in half of 5 % of the studies.
_SURE = 0.975
_MOST_TAKEN = 0.99


@dataclass(frozen=True)
class Slowdown:
    """The logarithms of how many times as long a side takes in a duet as alone, each of one run by each.

    `variance` is that of one of them, as both sides together tell it, with so many `degrees` of freedom.
    """

    label: str
    logs: tuple[float, ...]
    variance: float
    degrees: int

    @property
    def middle(self) -> float:
        """The mean of the logarithms."""
        return fmean(self.logs)

    def is_more_than(self, hidden: float) -> bool:
        """Whether it is there beyond doubt; or looks like more than `hidden` (relative), and than its own error."""
        from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and reading a study needs none of it

        error = sqrt(self.variance / len(self.logs))
        sure = self.middle > error * float(stdtrit(self.degrees, _SURE))
        return sure or self.middle > max(log(1.0 + hidden), error)

    def words(self) -> str:
        """Say it, as in `default 1.204`."""
        return f"{self.label} {exp(self.middle):.3f}"


def slowdowns(alone: BlockTable, duets: BlockTable, metric: Metric, most: int) -> tuple[Slowdown, ...]:
    """Return that of each side, by its first `most` rounds alone and in duets; none if a side has too few runs."""
    found = []
    for side in range(len(alone.sides)):
        before, after = ([_cost(one, metric) for one in _first(table, side, most)] for table in (alone, duets))
        logs = [after_log - before_log for before_log, after_log in zip(before, after, strict=False)]
        if len(logs) < LEAST_RUNS:
            return ()
        found.append(tuple(logs))
    # Four runs of one side say little of how much they differ.
    degrees = sum(len(logs) - 1 for logs in found)
    pooled = sum((len(logs) - 1) * variance(logs) for logs in found) / degrees
    return tuple(Slowdown(side.label, logs, pooled, degrees) for side, logs in zip(alone.sides, found, strict=True))


def _first(table: BlockTable, side: int, most: int) -> Sequence[Outcome]:
    numbers = sorted({number for number, _ in table.runs})[:most]
    runs = [table.runs[number, side] for number in numbers if (number, side) in table.runs]
    return [run.outcome for run in runs if run.outcome.complete]


def _cost(outcome: Outcome, metric: Metric) -> float:
    """Return the logarithm of a run's value, larger where it is slower, as if others had taken nothing from it."""
    taken = outcome.disturbance.taken_share or 0.0 if metric.is_pace else 0.0
    return metric.cost(log(outcome.metrics[metric.name])) + log1p(-min(taken, _MOST_TAKEN))
