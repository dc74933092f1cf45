"""The chance that a configuration runs: a kernel average of the runs and failures near it.

The average has Nadaraya-Watson weights and a Beta prior that counts as much as one configuration. So a run is expected
to work far from every failure and to fail among failures, and no region is excluded, since the chance is never zero.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from autotune.statistics.gaussian_process import Array, correlation

_TRUST = 1.0
_EXPECTED = 0.9
_LENGTH_SCALE = 0.2
# The most configurations that worked, and the most that failed, to look at; they represent all others.
_MOST_PER_OUTCOME = 500


def chance_to_work(candidates: Array, tried: Array, worked: Array) -> Array:
    """Return P(a run works), (m,), at `candidates`, (m, d), given `tried`, (n, d), and `worked`, (n,) of 0 and 1."""
    if worked.all():
        return np.ones(len(candidates))
    dimensions = tried.shape[1]
    places, counts = _representatives(worked)
    scales = np.full(dimensions, _LENGTH_SCALE * sqrt(dimensions))
    weights = correlation(candidates, tried[places], scales) * counts
    chances: Array = (_TRUST * _EXPECTED + weights @ worked[places]) / (_TRUST + weights.sum(1))
    return chances


def _representatives(worked: Array) -> tuple[NDArray[np.intp], Array]:
    """Return the positions of the configurations to look at, and how many each represents; all if they are few."""
    if len(worked) <= 2 * _MOST_PER_OUTCOME:
        return np.arange(len(worked)), np.ones(len(worked))
    sides = [np.flatnonzero(worked == outcome) for outcome in (0.0, 1.0)]
    chosen = [side[np.linspace(0, len(side) - 1, min(len(side), _MOST_PER_OUTCOME)).astype(np.intp)] for side in sides]
    counts = [np.full(len(some), len(side) / len(some)) for some, side in zip(chosen, sides, strict=True) if len(some)]
    return np.concatenate(chosen), np.concatenate(counts)
