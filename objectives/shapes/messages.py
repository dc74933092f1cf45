"""Times of messages by latency and bandwidth: the alpha-beta model (Hockney, Parallel Computing 20, 1994)."""

import numpy as np

from objectives.shapes.columns import Column


def message_s(bytes_: Column, latency_s: Column, bytes_per_s: Column) -> Column:
    """Return the time of a message between two ranks, in seconds."""
    return latency_s + bytes_ / bytes_per_s


def allreduce_s(ranks: Column, bytes_: Column, latency_s: Column, bytes_per_s: Column) -> tuple[Column, Column]:
    """Return the times of a sum over all ranks, in seconds: for its messages, and for their bytes.

    Long vectors pass a ring: 2 (p - 1) messages with 2 (p - 1) / p times the vector in total. Short vectors pass a tree
    of 2 log2(p) messages (Thakur, Rabenseifner & Gropp, Int. J. High Perform. Comput. Appl. 19, 2005; Patarasuk & Yuan,
    J. Parallel Distrib. Comput. 69, 2009). The faster of both counts.
    """
    many = np.maximum(ranks, 1.0)
    rounds = np.ceil(np.log2(many))
    ring = (2.0 * (many - 1.0) * latency_s, 2.0 * (many - 1.0) / many * bytes_ / bytes_per_s)
    tree = (2.0 * rounds * latency_s, 2.0 * rounds * bytes_ / bytes_per_s)
    is_short = sum(tree) < sum(ring)
    return np.where(is_short, tree[0], ring[0]), np.where(is_short, tree[1], ring[1])
