"""Judge from the pairs of a verdict and of its checks what has shifted."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log
from statistics import stdev

from autotune.statistics.change import Shift, shift
from objectives.base import Metric

Pair = tuple[float, float]

LEAST_PAIRS, MOST_PAIRS = 3, 20
# The wanted standard error of the mean log ratio of one check: after five checks a shift of 5 % is far beyond it.
_PRECISION = 0.016


class Quantity(StrEnum):
    """What is watched: the gain of the winner over the default, and the value of each."""

    GAIN = "gain"
    DEFAULT = "default"
    WINNER = "winner"

    @property
    def check_effect(self) -> float:
        """The expected spread between checks, in logarithms; smaller for the gain, in which shared effects cancel."""
        return 0.005 if self is Quantity.GAIN else 0.015

    @property
    def evidence(self) -> float:
        """The evidence of a shift that raises an alarm; `benchmarks/watch.py` measures how often it is false."""
        return 100.0 if self is Quantity.GAIN else 300.0

    def values(self, pairs: Sequence[Pair], metric: Metric) -> list[float]:
        """Return its logarithm in each (default, winner) pair; a larger gain is better, a larger cost is worse."""
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
        """The shifts with enough evidence for an alarm."""
        return {quantity: found for quantity, found in self.shifts.items() if found.evidence > quantity.evidence}


def judge(reference: Sequence[Pair], checks: Sequence[Sequence[Pair]], metric: Metric) -> Judgement:
    """Return how each quantity has shifted from the `reference` in `checks`, each with at least one pair."""
    return Judgement(
        {
            quantity: shift([quantity.values(pairs, metric) for pairs in (reference, *checks)], quantity.check_effect)
            for quantity in Quantity
        }
    )


def pairs_of_a_check(reference: Sequence[Pair], metric: Metric) -> int:
    """Return the number of pairs that a check needs, from the spread of the ratios in the reference."""
    gains = Quantity.GAIN.values(reference, metric)
    noise = stdev(gains) if len(gains) > 1 else 0.0
    return min(MOST_PAIRS, max(LEAST_PAIRS, ceil((noise / _PRECISION) ** 2)))
