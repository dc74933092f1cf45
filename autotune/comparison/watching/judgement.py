"""The judgement: what the checks of a watch say of a verdict, from the pairs of both and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log
from statistics import stdev

from autotune.statistics.change import Shift, shift
from objectives.base import Metric

Pair = tuple[float, float]

LEAST_PAIRS, MOST_PAIRS = 3, 20
# What the mean of one check's ratios may be off by: with the runs of five checks, 5 % are far beyond it.
_PRECISION = 0.016


class Quantity(StrEnum):
    """What is watched: the gain of the winner over the default, and each of the two by itself."""

    GAIN = "gain"
    DEFAULT = "default"
    WINNER = "winner"

    @property
    def check_effect(self) -> float:
        """How much it is expected to differ from check to check: what both have in common is not in the gain."""
        return 0.005 if self is Quantity.GAIN else 0.015

    @property
    def evidence(self) -> float:
        """How much evidence of a shift is an alarm; `benchmarks/watch.py` has how often that is a false one."""
        return 100.0 if self is Quantity.GAIN else 300.0

    def values(self, pairs: Sequence[Pair], metric: Metric) -> list[float]:
        """Return its logarithm in each pair of default and winner: a greater gain is better, a greater cost worse."""
        match self:
            case Quantity.GAIN:
                return [metric.cost(log(default / winner)) for default, winner in pairs]
            case Quantity.DEFAULT:
                return [metric.cost(log(default)) for default, _ in pairs]
            case Quantity.WINNER:
                return [metric.cost(log(winner)) for _, winner in pairs]


@dataclass(frozen=True)
class Judgement:
    """How each quantity has shifted since the verdict, in the order of `Quantity`."""

    shifts: dict[Quantity, Shift]

    @property
    def alarms(self) -> dict[Quantity, Shift]:
        """The shifts that are no chance."""
        return {quantity: found for quantity, found in self.shifts.items() if found.evidence > quantity.evidence}


def judge(reference: Sequence[Pair], checks: Sequence[Sequence[Pair]], metric: Metric) -> Judgement:
    """Return what has shifted in `checks`, which have a pair each at least; the reference is the verdict's pairs."""
    return Judgement(
        {
            quantity: shift([quantity.values(pairs, metric) for pairs in (reference, *checks)], quantity.check_effect)
            for quantity in Quantity
        }
    )


def pairs_of_a_check(reference: Sequence[Pair], metric: Metric) -> int:
    """Return how many pairs a check needs, by how much the ratios of the verdict's pairs differ."""
    gains = Quantity.GAIN.values(reference, metric)
    noise = stdev(gains) if len(gains) > 1 else 0.0
    return min(MOST_PAIRS, max(LEAST_PAIRS, ceil((noise / _PRECISION) ** 2)))
