"""Strata: on which node each round of a comparison runs.

The runs of a round are compared with each other, so all are on one node; rounds are spread evenly over the nodes, so
that what is fast on one node only does not look fast (stratified sampling: Cochran, Sampling Techniques, 1977).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np


def node_of(
    number: int, ran: Mapping[int, str], nodes: Sequence[str], seed: int, used: Collection[str] = ()
) -> str | None:
    """Return the node of a round: where its other runs are, or one of those with the fewest rounds, by lot.

    `ran` are the nodes of the rounds so far; one that has left is not waited for. Those that were `used` to choose what
    is compared come last: what was lucky there has its luck from them. None if there are no nodes.
    """
    if not nodes:
        return None
    if (together := ran.get(number)) in nodes:
        return together
    rounds = Counter(ran.values())
    least = min((rounds[node], node in used) for node in nodes)
    free = sorted(node for node in nodes if (rounds[node], node in used) == least)
    return free[int(np.random.default_rng([seed, number, len(free)]).integers(len(free)))]
