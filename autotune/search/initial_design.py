"""The first configurations of a search: a few that tell of the whole valid set, however it is shaped.

By turns the one that brings all others nearest to a tried one (a facility-location design: the middle of what is not
covered yet) and the one that is farthest from all tried (maximin: Johnson, Moore & Ylvisaker 1990: the corners). Each
is chosen greedily, given what was tried before, so that a design can be cut short, interrupted and resumed.
"""

import numpy as np
from numpy.typing import NDArray

from autotune.statistics.gaussian_process import Array, squared_distances


def ranked(candidates: Array, tried: Array) -> NDArray[np.intp]:
    """Return the places of `candidates`, (m, d), given the traits of what was `tried`, (n, d), the best first."""
    nearest = np.sqrt(squared_distances(candidates, tried)).min(1)
    if len(tried) % 2 == 0:
        return np.argsort(-nearest, kind="stable")
    left = np.minimum(np.sqrt(squared_distances(candidates, candidates)), nearest[:, None]).mean(0)
    return np.argsort(left, kind="stable")
