"""Placement: the nodes of the ranks of each pool, and how many pairs of its ranks are on different nodes."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Placement:
    """The placement of n runs; columns, (n,) each. The pool meant is the one on most nodes.

    Args:
        nodes: The nodes of the run.
        ranks_of_node: The ranks of a full node.
        span: The nodes of the pool.
        share: The share of the pool's ordered pairs of ranks that are on different nodes.
        pairs: The number of its pairs on different nodes.
        sharing: The pools on several nodes that share a node's network.
    """

    nodes: Column
    ranks_of_node: Column
    span: Column
    share: Column
    pairs: Column
    sharing: Column


def place_ranks(ranks: Column, pools: Column, threads: Column, nodes: Column, cores_per_node: Column) -> Placement:
    """Return where ranks are that fill nodes one after another; all (n,), NaN where something is unknown.

    If they would leave one of the `nodes` empty, they are spread evenly. If `nodes` is NaN, they use as few as
    possible.
    """
    room = np.maximum(np.floor(cores_per_node / threads), 1.0)
    used = np.where(np.isnan(nodes), np.ceil(ranks / room), nodes)
    fills = (ranks > (used - 1.0) * room) & (ranks <= used * room)
    capacity = np.where(fills, room, np.ceil(ranks / used))
    capacity[np.isnan(room)] = np.nan
    size = np.floor(ranks / pools)
    keys = np.column_stack([size, pools, capacity])
    there = np.isfinite(keys).all(axis=1) & (size >= 1.0)
    found = np.full((len(ranks), 4), np.nan)
    if there.any():
        distinct, places = np.unique(keys[there], axis=0, return_inverse=True)
        found[there] = _widest_pool(distinct)[places.reshape(-1)]
    span, share, pairs, spans = found.T
    return Placement(used, np.minimum(capacity, ranks), span, share, pairs, np.maximum(1.0, spans / used))


def _widest_pool(keys: Column) -> Column:
    """Return the placement of the pool that spreads over most nodes, for each of u cases.

    Args:
        keys: The ranks of a pool, the number of pools and the ranks of a node, (u, 3).

    Returns:
        The number of nodes, the share of ordered pairs of ranks on different nodes, and their number; and the nodes of
        all pools that are on several, (u, 4).
    """
    size, pools, capacity = keys.T
    best = np.tile([1.0, 0.0, 0.0, 0.0], (len(keys), 1))
    # The position in a node at which a pool begins repeats with a period of `capacity` pools.
    for pool in range(int(np.minimum(pools, capacity).max())):
        first = np.minimum(size, capacity - (pool * size) % capacity)
        whole = np.floor((size - first) / capacity)
        last = size - first - whole * capacity
        share = 1.0 - (first**2 + whole * capacity**2 + last**2) / size**2
        span = 1.0 + whole + (last > 0.0)
        alike = np.where(pool < np.minimum(pools, capacity), 1.0 + np.floor((pools - 1.0 - pool) / capacity), 0.0)
        best[:, 3] += np.where(span > 1.0, alike * span, 0.0)
        wider = (pool < pools) & ((span > best[:, 0]) | ((span == best[:, 0]) & (share > best[:, 1])))
        best[wider, :3] = np.column_stack([span, share, share * size**2 / 2.0])[wider]
    return best
