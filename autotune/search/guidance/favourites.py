"""Favourites: the configurations that a guide thinks best, of a valid set that is too large to be asked about."""

import numpy as np
from numpy.typing import NDArray

from autotune.search.guidance.prior_mean import PriorMean
from spaces import Space

Rows = NDArray[np.int32]

_DRAWN = 8_000
_KEPT = 500
_CLIMBED = 10
_CLIMBS = 20


def favourites(space: Space, guide: PriorMean) -> Rows:
    """Return the best of many draws and of their neighbours, (m, p), the best first; m is a few hundred at most.

    What the guide is asked is the mean of its fields: that is its say before anything was measured.
    """
    drawn = space.sample_indices(np.random.default_rng(0), _DRAWN)
    best, costs = _best(guide, np.concatenate([space.indices([space.default()]), drawn]))
    for _ in range(_CLIMBS):
        worst = costs[:_CLIMBED].sum()
        best, costs = _best(guide, np.concatenate([best, neighbours_of(space, best[:_CLIMBED])]))
        if costs[:_CLIMBED].sum() >= worst:
            break
    return best


def neighbours_of(space: Space, rows: Rows) -> Rows:
    """Return the neighbours, (m, p), of all of `rows`, (n, p)."""
    return space.indices([near for configuration in space.decode(rows) for near in space.neighbours(configuration)])


def _best(guide: PriorMean, rows: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return the best, each once, and their costs; of the same cost the first in the order of the space."""
    rows = np.unique(rows, axis=0)
    costs = guide.fields(rows).mean(axis=1)
    order = np.argsort(costs, kind="stable")[:_KEPT]
    return np.ascontiguousarray(rows[order]), costs[order]
