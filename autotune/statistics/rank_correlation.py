"""Rank correlation: whether two quantities put the same things in the same order, with its interval.

Spearman's; the interval is that of Fisher's transformation with the variance of Bonett & Wright ("Sample size
requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65, 2000).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from statistics import correlation

_NORMAL_95 = 1.96
_LEAST = 4
_SURE = 1.0 - 1e-9


@dataclass(frozen=True)
class RankCorrelation:
    """The correlation of the ranks of `count` pairs, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    count: int

    def words(self) -> str:
        """Say it, as in `0.93 (95 % interval 0.71 to 0.98, 12 pairs)`."""
        return f"{self.value:.2f} (95% interval {self.low:.2f} to {self.high:.2f}, {self.count} pairs)"


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> RankCorrelation | None:
    """Return the rank correlation of pairs; None of fewer than four, or where one side is all alike."""
    count = len(first)
    if count < _LEAST or len(set(first)) == 1 or len(set(second)) == 1:
        return None
    value = correlation(_ranks(first), _ranks(second))
    value = min(max(value, -_SURE), _SURE)
    width = _NORMAL_95 * sqrt((1.0 + value**2 / 2.0) / (count - 3))
    return RankCorrelation(value, tanh(atanh(value) - width), tanh(atanh(value) + width), count)


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks from 0; equal values have the middle of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]
