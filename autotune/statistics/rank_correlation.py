"""Rank correlation: whether two quantities put the same things in the same order, with its interval.

Spearman's; the interval is that of Fisher's transformation with the variance of Bonett & Wright ("Sample size
requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65, 2000). Where only a bound is
known of some values it is Kendall's, of the pairs that can be compared (Oakes, "A concordance test for independence in
the presence of censoring", Biometrics 38, 1982): the ranks of bounds say when runs were stopped, and not what they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import atanh, sqrt, tanh
from statistics import correlation

import numpy as np

_NORMAL_95 = 1.96
_LEAST = 4
_SURE = 1.0 - 1e-9
# The variance of the transformed correlation of n pairs is this over n - 4.
_KENDALL = 0.437


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


def bounded_rank_correlation(
    first: Sequence[float], second: Sequence[float], bounded: Sequence[bool]
) -> RankCorrelation | None:
    """Return Kendall's rank correlation of pairs, (n,); None where too few can be compared.

    Where `bounded` is set, the second quantity is at least as large as given. Two pairs are comparable if it is known
    whose second quantity is larger. The interval is Fisher's, with the variance that Fieller, Hartley & Pearson ("Tests
    for rank correlation coefficients", Biometrika 44, 1957) give for as many comparisons. One more comparison that
    tells nothing keeps a few that agree from being sure.
    """
    x, y, is_bound = np.asarray(first), np.asarray(second), np.asarray(bounded, dtype=bool)
    below = (y[:, None] < y[None, :]) & ~is_bound[:, None]
    agreed, compared = float(np.sign(x[None, :] - x[:, None])[below].sum()), int(below.sum())
    like = (1.0 + sqrt(1.0 + 8.0 * compared)) / 2.0
    if like <= _LEAST:
        return None
    value = agreed / (compared + 1)
    width = _NORMAL_95 * sqrt(_KENDALL / (like - _LEAST))
    return RankCorrelation(value, tanh(atanh(value) - width), tanh(atanh(value) + width), len(x))


def _ranks(values: Sequence[float]) -> list[float]:
    """Return the ranks from 0; equal values have the middle of theirs."""
    return [
        sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2 for value in values
    ]
