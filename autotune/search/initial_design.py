"""The first configurations of a search: a few that cover the whole valid set, whatever its shape.

They are chosen in turns: the configuration that brings all others nearest to a tried one (facility location: the middle
of the uncovered part), and the one farthest from all tried ones (maximin: Johnson, Moore & Ylvisaker 1990: the
corners). Each is chosen greedily, given the tried ones, so that a design can be shortened, interrupted and resumed.
"""

import numpy as np
from numpy.typing import NDArray

from autotune.statistics.gaussian_process import Array, squared_distances


def rank(candidates: Array, tried: Array) -> NDArray[np.intp]:
    """Return the positions of `candidates`, traits (m, d), the best first, given the `tried` ones, traits (n, d)."""
    nearest = np.sqrt(squared_distances(candidates, tried)).min(1)
    if len(tried) % 2 == 0:
        return np.argsort(-nearest, kind="stable")
    left = np.minimum(np.sqrt(squared_distances(candidates, candidates)), nearest[:, None]).mean(0)
    return np.argsort(left, kind="stable")
