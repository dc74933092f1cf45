"""Decisions: which candidate to take, what the front of time against core-hours is, and what to run next to know."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places
from autotune.performance.rightsizing.belief import Times
from autotune.performance.rightsizing.candidates import Candidates
from autotune.performance.rightsizing.limits import Limits

CONFIDENCE = 0.9
"""The probability with which the limits are to be kept."""

# A run that should gain less than this share of the cost is not worth it.
_WORTH = 0.001
# A gain counts by this power of the run's own cost: a cheap one first, but not only because it is cheap.
_COST_POWER = 0.5


@dataclass(frozen=True)
class Decision:
    """What is known of each candidate under limits: `cost`, (n,), what is to be the least, and the `chance`, (n,).

    `chosen` is the place of the cheapest one that keeps the limits with enough probability; of the one that keeps them
    most probably, where none does.
    """

    cost: FloatArray
    chance: FloatArray
    chosen: int

    @property
    def keeps(self) -> bool:
        """Whether the chosen one keeps the limits with enough probability."""
        return bool(self.chance[self.chosen] >= CONFIDENCE)


def decided(candidates: Candidates, times: Times, limits: Limits) -> Decision:
    """Choose among candidates by what is believed of their times."""
    chance = times.chance(limits.longest(candidates))
    cost = times.middle * limits.price(candidates)
    keeping = np.flatnonzero(chance >= CONFIDENCE)
    chosen = keeping[cost[keeping].argmin()] if len(keeping) else chance.argmax()
    return Decision(cost, chance, int(chosen))


def front(candidates: Candidates, times: Times) -> Places:
    """Return the candidates, fastest first, of which no other is expected to be as fast for fewer core-seconds."""
    order = np.lexsort((candidates.cores, times.middle))
    core_s = (times.middle * candidates.cores)[order]
    least = np.minimum.accumulate(np.concatenate([[np.inf], core_s[:-1]]))
    return np.asarray(order[core_s < least])


def next_probe(
    candidates: Candidates,
    times: Times | None,
    limits: Limits,
    probes: Collection[int],
) -> int | None:
    """Return the place of the candidate that should run next, after those at `probes`; None if no run is worth it.

    The first, where nothing is known of times yet (`times` is None), is one of the middle; then counts what a run is
    expected to spare, or while nothing is known to keep the limits its chance to keep them, over its own cost.
    """
    if times is None:
        cores = np.log(candidates.cores)
        apart = np.abs(cores - np.median(cores)) + np.log(candidates.nodes)
        return int(apart.argmin())
    decision = decided(candidates, times, limits)
    spent = (times.middle * candidates.cores) ** _COST_POWER
    if not decision.keeps:
        if (ran := np.isin(np.arange(len(candidates)), list(probes))).all():
            return None
        return int(np.where(ran, -np.inf, decision.chance / spent).argmax())
    best = float(decision.cost[decision.chosen])
    gain = times.gain(limits.longest(candidates), limits.price(candidates), best)
    worth = gain / spent
    if not (gain > _WORTH * best).any():
        return None
    return int(worth.argmax())
