"""Transfer: predict the best configurations of a space on a machine from measurements of the space on other machines.

The model predicts no times, but how near a configuration comes to the best, in each of several possible worlds. To
estimate its uncertainty, it also predicts each known source without that source's data; if the machine is new, without
any data of the source's machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import Interval
from autotune.performance.transfer.sources import FLOOR, Source
from autotune.performance.transfer.worlds import Evidence, Worlds
from autotune.records.measurement import Setting
from spaces import Space
from spaces.valid_set.valid_set import Indices

# Trees learn from at most this many configurations, which include the best of each machine.
_LEARNT = 6_000
_BEST_SHARE = 0.15
_LEAST = 0.05
# Rank configurations that add nothing to those chosen before by their own efficiency.
_TIE_BREAK = 1e-6


@dataclass(frozen=True, eq=False)
class Transfer:
    """The expected efficiencies of configurations on a machine.

    Attributes:
        rows: Value indexes of the configurations, (n, p), the default first.
        expected: Their expected efficiencies, (n,).
        surprises: (s, n), the differences of s sources from the efficiencies predicted without their data.
        proposals: Indexes of rows, the best first.
        gains: For each source, the logarithm of the speed-up over the default of the proposal made without its data.
        is_floored: Whether the default was somewhere slower than the floor of efficiency, by an unknown factor.
        machines: The number of known machines, which may be fewer than the sources.
    """

    rows: Indices
    expected: FloatArray
    surprises: FloatArray
    proposals: tuple[int, ...]
    gains: FloatArray
    is_floored: bool
    machines: int

    def speed_up(self, index: int) -> Interval | None:
        """Return the speed-up of a configuration over the default; None with fewer than two known machines.

        The interval assumes surprises as large as on the known machines, and includes the gains of the first proposals
        there: a new machine lies between the extremes of m others in a share (m - 1) / (m + 1) of cases.
        """
        m = self.machines
        if m < 2:
            return None
        surprised = self.expected[[index, 0]] + self.surprises[:, [index, 0]]
        logs = np.log(np.clip(surprised, _LEAST, 1.0))
        seen = logs[:, 0] - logs[:, 1]
        value = float(np.log(self.expected[index] / self.expected[0]))
        ends = np.concatenate([seen, self.gains]) if index in self.proposals[:1] else seen
        low, high = min(value, float(ends.min())), max(value, float(ends.max()))
        return Interval(float(np.exp(value)), float(np.exp(low)), float(np.exp(high)), (m - 1) / (m + 1))


def transfer(  # noqa: PLR0913, PLR0917  they have little in common
    space: Space,
    setting: Setting,
    sources: Sequence[Source],
    rows: Indices,
    count: int,
    chances: FloatArray | None = None,
    machines: Sequence[int] | None = None,
) -> Transfer:
    """Predict the efficiencies of configurations in a setting.

    Args:
        space: The space.
        setting: The setting.
        sources: The measurements of the space elsewhere, at least one source.
        rows: Value indexes of the configurations, (n, p), the default first.
        count: The number of proposals.
        chances: The chances that the rows work, (n,), by which efficiencies are multiplied; None if unknown.
        machines: A number for each source; sources with the same number are left out together. None: one each.
    """
    evidence = Evidence.of(space, setting, sources, rows)
    learnt = evidence.at(_worth_learning(evidence))
    places = range(len(sources))
    machines = places if machines is None else machines
    worlds = Worlds.of(evidence, learnt, places, len(sources))
    working = np.ones(len(rows)) if chances is None else chances
    # Do not propose the default: it is measured anyway.
    allowed = np.arange(len(rows)) > 0
    better = allowed & (worlds.expected > worlds.expected[0])
    proposals = portfolio(worlds.efficiencies * working, worlds.chances, count, allowed) if better.any() else ()
    true = np.exp(evidence.whole)
    known = len(set(machines))
    left_out = np.array([_without(evidence, learnt, out, machines) for out in places]) if known > 1 else true[:0]
    surprises = true[: len(left_out)] - left_out
    floored = bool((evidence.whole[:, 0] <= np.log(FLOOR)).any())
    return Transfer(rows, worlds.expected, surprises, proposals, _gains(true, left_out), floored, known)


def portfolio(
    efficiencies: FloatArray, chances: FloatArray, count: int, allowed: npt.NDArray[np.bool_]
) -> tuple[int, ...]:
    """Choose configurations so that in every possible world one of them is good; return their indexes, the best first.

    Each is chosen for its mean improvement over those chosen before: this greedy choice is within 1 - 1/e of the best
    set (Nemhauser, Wolsey & Fisher 1978).

    Args:
        efficiencies: The efficiency of each configuration in w worlds, (w, n).
        chances: The chances of the worlds, (w,).
        count: The most configurations to choose.
        allowed: Which configurations may be chosen, (n,).
    """
    alone = _TIE_BREAK * (chances @ efficiencies)
    best = np.zeros(len(chances))
    left = allowed.copy()
    chosen: list[int] = []
    while len(chosen) < count and left.any():
        gains = chances @ np.maximum(efficiencies, best[:, None]) + alone
        chosen.append(int(np.where(left, gains, -1.0).argmax()))
        left[chosen[-1]] = False
        best = np.maximum(best, efficiencies[:, chosen[-1]])
    return tuple(chosen)


def _without(evidence: Evidence, learnt: Evidence, out: int, machines: Sequence[int]) -> FloatArray:
    """Return the expected efficiencies, (n,), of a source, predicted from other machines."""
    others = [place for place, machine in enumerate(machines) if machine != machines[out]]
    return Worlds.of(evidence, learnt, others, out).expected


def _gains(true: FloatArray, guessed: FloatArray) -> FloatArray:
    """Return the logarithms of the speed-ups over the default, (m,), of the configuration guessed for each machine."""
    first = guessed[:, 1:].argmax(axis=1) + 1
    gains: FloatArray = np.log(true[np.arange(len(first)), first] / true[np.arange(len(first)), 0])
    return gains


def _worth_learning(evidence: Evidence) -> npt.NDArray[np.intp]:
    known = np.flatnonzero(np.any(~np.isnan(evidence.known), axis=0))
    if len(known) <= _LEARNT:
        return known
    logs = np.where(np.isnan(evidence.known), np.log(FLOOR), evidence.known)
    best = np.unique(np.argsort(-logs, axis=1)[:, : int(_BEST_SHARE * _LEARNT)])
    others = np.setdiff1d(known, best)
    drawn = np.random.default_rng(0).permutation(others)[: max(0, _LEARNT - len(best))]
    return np.union1d(best, drawn)
