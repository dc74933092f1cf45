"""How likely a configuration is to run: a kernel average of what ran and what failed near it.

With Nadaraya-Watson weights and one configuration's worth of trust in the space (a Beta prior): far from every failure
a run is expected to work, among failures it is not, and no region is given up, since the chance never reaches zero.
"""

from math import sqrt

import numpy as np

from autotune.search.surrogate import Array, correlation

_TRUST = 1.0
_EXPECTED = 0.9
_LENGTH_SCALE = 0.2


def chance_to_work(candidates: Array, tried: Array, worked: Array) -> Array:
    """Return P(a run works), (m,), at `candidates`, (m, d), given `tried`, (n, d), and `worked`, (n,) of 0 and 1."""
    if worked.all():
        return np.ones(len(candidates))
    dimensions = tried.shape[1]
    weights = correlation(candidates, tried, np.full(dimensions, _LENGTH_SCALE * sqrt(dimensions)))
    chances: Array = (_TRUST * _EXPECTED + weights @ worked) / (_TRUST + weights.sum(1))
    return chances
