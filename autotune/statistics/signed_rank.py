"""Paired comparison with one assumption about the noise: it falls on either side equally often.

Two runs of a pair see the same machine; if their noise has the same shape, heavy-tailed and skewed as it may be, the
difference of their logarithms is symmetric around the true one. So the pseudomedian (Hodges & Lehmann 1963) estimates
it, and inverting Wilcoxon's signed-rank test gives an interval that is exact for any such noise (Hollander, Wolfe &
Chicken, Nonparametric Statistical Methods, 2014, section 3.4).
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray


@cache
def null_distribution(pairs: int) -> NDArray[np.float64]:
    """Return P(T <= t) of the signed-rank statistic for t = 0, 1, ..., n (n + 1) / 2."""
    counts = np.ones(1)
    for rank in range(1, pairs + 1):
        shifted = np.zeros(len(counts) + rank)
        shifted[: len(counts)] = counts
        shifted[rank:] += counts
        counts = shifted / 2.0
    cumulated: NDArray[np.float64] = np.cumsum(counts)
    return cumulated


def least_pairs(confidence: float) -> int:
    """Return the least number of pairs for an interval of a confidence."""
    pairs = 1
    while 2.0 * 0.5**pairs > 1.0 - confidence + 1e-12:
        pairs += 1
    return pairs


def interval(differences: Sequence[float], confidence: float) -> tuple[float, float, float]:
    """Return the pseudomedian of differences and the ends of its two-sided interval.

    Raises:
        ValueError: there are fewer than `least_pairs`.
    """
    count = len(differences)
    if count < least_pairs(confidence):
        msg = f"a {confidence:.0%} interval needs {least_pairs(confidence)} pairs, got {count}"
        raise ValueError(msg)
    values = np.asarray(differences, dtype=float)
    first, second = np.triu_indices(count)
    means = np.sort((values[first] + values[second]) / 2.0)
    # The interval from the k-th mean to the k-th last covers with 1 - 2 P(T <= k - 1).
    k = int(np.searchsorted(null_distribution(count), (1.0 - confidence) / 2.0, side="right"))
    return float(np.median(means)), float(means[k - 1]), float(means[-k])
