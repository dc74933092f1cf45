"""Find the best configurations under a prior mean, in a valid set that is too large to be evaluated as a whole."""

import numpy as np
from numpy.typing import NDArray

from autotune.search.guidance.prior_mean import PriorMean
from spaces import Space

Rows = NDArray[np.int32]

_DRAWN = 8_000
_KEPT = 500
_CLIMBED = 10
_CLIMBS = 20


def prior_candidates(space: Space, prior: PriorMean) -> Rows:
    """Return the best of many draws and of their neighbours, (m, p), the best first; m is at most a few hundred.

    Configurations are compared by the mean of the prior's fields, which is its prediction before any measurement.
    """
    drawn = space.sample_indices(np.random.default_rng(0), _DRAWN)
    best, costs = _best(prior, np.concatenate([space.indices([space.default()]), drawn]))
    for _ in range(_CLIMBS):
        worst = costs[:_CLIMBED].sum()
        best, costs = _best(prior, np.concatenate([best, neighbours_of(space, best[:_CLIMBED])]))
        if costs[:_CLIMBED].sum() >= worst:
            break
    return best


def neighbours_of(space: Space, rows: Rows) -> Rows:
    """Return the neighbours, (m, p), of all of `rows`, (n, p)."""
    return space.indices([near for configuration in space.decode(rows) for near in space.neighbours(configuration)])


def _best(prior: PriorMean, rows: Rows) -> tuple[Rows, NDArray[np.float64]]:
    """Return the best distinct rows and their costs; rows of equal cost are in the order of the space."""
    rows = np.unique(rows, axis=0)
    costs = prior.fields(rows).mean(axis=1)
    order = np.argsort(costs, kind="stable")[:_KEPT]
    return np.ascontiguousarray(rows[order]), costs[order]
