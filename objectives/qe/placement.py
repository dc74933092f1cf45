"""Placement: on which nodes the ranks of pools are, and how many of their pairs talk across nodes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Placement:
    """Of each run, (n,): its nodes, the ranks of a full one, and of the pool on most nodes those and what crosses them.

    `share` is the share of the ordered pairs of ranks of that pool that are on different nodes, `pairs` how many pairs.
    """

    nodes: Column
    ranks_of_node: Column
    span: Column
    share: Column
    pairs: Column


def place_ranks(ranks: Column, pools: Column, threads: Column, nodes: Column, cores_per_node: Column) -> Placement:
    """Return where ranks are that fill nodes one after the other; all (n,), NaN where something is not known.

    If they would leave one of the `nodes` empty they are spread evenly. Where `nodes` is NaN, as few as possible.
    """
    room = np.maximum(np.floor(cores_per_node / threads), 1.0)
    used = np.where(np.isnan(nodes), np.ceil(ranks / room), nodes)
    fills = (ranks > (used - 1.0) * room) & (ranks <= used * room)
    capacity = np.where(fills, room, np.ceil(ranks / used))
    capacity[np.isnan(room)] = np.nan
    size = np.floor(ranks / pools)
    keys = np.column_stack([size, pools, capacity])
    there = np.isfinite(keys).all(axis=1) & (size >= 1.0)
    found = np.full((len(ranks), 3), np.nan)
    if there.any():
        distinct, places = np.unique(keys[there], axis=0, return_inverse=True)
        found[there] = _widest_pool(distinct)[places.reshape(-1)]
    return Placement(used, np.minimum(capacity, ranks), *found.T)


def _widest_pool(keys: Column) -> Column:
    """Return span, share and pairs, (u, 3), of the pool on most nodes; `keys`: ranks of a pool, pools, ranks a node."""
    size, pools, capacity = keys.T
    best = np.tile([1.0, 0.0, 0.0], (len(keys), 1))
    # Where pools begin within a node repeats after as many pools as a node has ranks.
    for pool in range(int(np.minimum(pools, capacity).max())):
        first = np.minimum(size, capacity - (pool * size) % capacity)
        whole = np.floor((size - first) / capacity)
        last = size - first - whole * capacity
        share = 1.0 - (first**2 + whole * capacity**2 + last**2) / size**2
        span = 1.0 + whole + (last > 0.0)
        wider = (pool < pools) & ((span > best[:, 0]) | ((span == best[:, 0]) & (share > best[:, 1])))
        best[wider] = np.column_stack([span, share, share * size**2 / 2.0])[wider]
    return best
