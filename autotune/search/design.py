"""The first configurations of a search: a few that tell of the whole valid set, however it is shaped.

By turns the one that brings all others nearest to a tried one (a facility-location design: the middle of what is not
covered yet) and the one that is farthest from all tried (maximin: Johnson, Moore & Ylvisaker 1990: the corners). Each
is chosen greedily, given what was tried before, so that a design can be cut short, interrupted and gone on with.
"""

import numpy as np
from numpy.typing import NDArray

from autotune.search.surrogate import Array


def ranked(candidates: Array, tried: Array) -> NDArray[np.intp]:
    """Return the places of `candidates`, (m, d), given the traits of what was `tried`, (n, d), the best first."""
    nearest = _distances(candidates, tried).min(1)
    if len(tried) % 2 == 0:
        return np.argsort(-nearest, kind="stable")
    left = np.minimum(_distances(candidates, candidates), nearest[:, None]).mean(0)
    return np.argsort(left, kind="stable")


def _distances(a: Array, b: Array) -> Array:
    squared = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2.0 * (a @ b.T)
    distances: Array = np.sqrt(np.maximum(squared, 0.0))
    return distances
