"""Transfer: which configurations of a space should be best on a machine, by measurements of it on other machines.

No time is predicted, only how near a configuration comes to the best: in each of several possible worlds, of which the
machine may be any. Each known machine is predicted without its own data, too, which tells how certain a prediction is:
without any of its data, where the machine is what is new.
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

# The most configurations that trees learn from; the best of each machine are among them.
_LEARNT = 6_000
_BEST_SHARE = 0.15
_LEAST = 0.05
# Configurations that add nothing to those chosen before are ranked by their own efficiency.
_TIE_BREAK = 1e-6


@dataclass(frozen=True, eq=False)
class Transfer:
    """The expected efficiencies of configurations, `rows` (n, p), on a machine.

    The first of them is the default. `expected` are efficiencies, (n,); `surprises`, (s, n), how far s sources were
    from their expected efficiencies without what was left out with them; `proposals` are indices of rows, the best
    first. `gains` are the logarithms of the speed-ups over the default of the first proposal for each source, made
    likewise. `is_floored`: somewhere the default was slower than the floor of efficiency, so by how much is unknown.
    `machines` is how many are known, fewer than the sources where several of these are of one.
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

        The ends of its interval assume surprises as large as on the known machines, and include the gains of the first
        proposals there: a new machine lies between the ends of m others in a share (m - 1) / (m + 1) of cases.
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
    """Return the transfer from at least one source to `rows`, (n, p), the first being the default configuration.

    `chances`, (n,), are those that a row works, if they are known: a proposal is good by its efficiency times that.
    Sources that have the same number in `machines` are left out together; without, each is a machine of its own.
    """
    evidence = Evidence.of(space, setting, sources, rows)
    learnt = evidence.at(_worth_learning(evidence))
    places = range(len(sources))
    machines = places if machines is None else machines
    worlds = Worlds.of(evidence, learnt, places, len(sources))
    working = np.ones(len(rows)) if chances is None else chances
    # The default is measured anyway; where nothing is expected to beat it there is nothing to propose.
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
    """Return the indices of at most `count` of the `allowed` ones of n configurations, the best first.

    In any possible world, the best of them should be good. Each is chosen for what it adds to those chosen before, in
    the mean over worlds: a greedy choice that is within 1 - 1/e of the best set (Nemhauser, Wolsey & Fisher 1978).

    Args:
        efficiencies: of each configuration in w worlds, (w, n).
        chances: those of the worlds, (w,).
        count: how many to choose.
        allowed: which may be chosen, (n,).
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
    """Return the expected efficiencies, (n,), at a source by those of other machines."""
    others = [place for place, machine in enumerate(machines) if machine != machines[out]]
    return Worlds.of(evidence, learnt, others, out).expected


def _gains(true: FloatArray, guessed: FloatArray) -> FloatArray:
    """Return the logarithms of the speed-ups, (m,), of the best guess for each machine over the default."""
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
