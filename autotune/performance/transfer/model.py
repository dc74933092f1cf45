"""Transfer: predict the best configurations of a space on a machine from measurements of the space on other machines.

The model predicts no times, but how near a configuration comes to the best, in each of several possible worlds. To
estimate its uncertainty, it also predicts each known source without that source's data; if the machine is new, without
any data of the source's machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from autotune.performance.regression.prediction import Interval
from autotune.performance.transfer.sources import FLOOR, Source
from autotune.performance.transfer.worlds import Evidence, Worlds
from autotune.records.measurement import Setting
from spaces import Space
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

# Trees learn from at most this many configurations, which include the best of each machine.
_LEARNT = 6_000
_BEST_SHARE = 0.15
_LEAST = 0.05
_NOTHING = -20.0  # the logarithm of an efficiency of 0
# Rank configurations that add nothing to those chosen before by their own efficiency.
_TIE_BREAK = 1e-6
# The standard deviation by which the logarithm of a speed-up differs from that on a known machine.
_FURTHER = 0.1
# What counts beside the known machines: how first proposals did elsewhere, as the mean and the spread of such misses.
_USUAL_MISS, _USUAL_SPREAD = -0.1, 0.3


@dataclass(frozen=True, eq=False)
class Transfer:
    """The expected efficiencies of configurations on a machine.

    Attributes:
        rows: Value indexes of the configurations, (n, p), the default first.
        expected: Their expected efficiencies, (n,).
        surprises: (s, n), the differences of s sources from the efficiencies predicted without their data.
        proposals: Indexes of rows, the best first; the default is first unless another is likely to beat it.
        gains: For each source, the logarithm of the speed-up over the default of the proposal made without its data.
        misses: For each source, by how much this differs from the predicted one.
        chance: The chance that the best other configuration beats the default.
        is_floored: Whether the default was somewhere slower than the floor of efficiency, by an unknown factor.
        machines: The number of known machines, which may be fewer than the sources.
    """

    rows: Indices
    expected: FloatArray
    surprises: FloatArray
    proposals: tuple[int, ...]
    gains: FloatArray
    misses: FloatArray
    chance: float
    is_floored: bool
    machines: int

    def speed_up(self, index: int) -> Interval | None:
        """Return the speed-up of a configuration over the default; None for it, or with fewer than two known machines.

        The interval assumes surprises as large as on the known machines; for the first proposal, those of the first
        proposals there, since the best of many looks better than it is. A new machine lies between the extremes of m
        others in a share (m - 1) / (m + 1) of cases.
        """
        m = self.machines
        if m < 2 or not index:
            return None
        surprised = self.expected[[index, 0]] + self.surprises[:, [index, 0]]
        logs = np.log(np.clip(surprised, _LEAST, 1.0))
        value = float(np.log(self.expected[index] / self.expected[0]))
        ends = value + self.misses if index in self.proposals[:1] else logs[:, 0] - logs[:, 1]
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
    true = np.exp(evidence.whole)
    known = len(set(machines))
    left_out = np.array([_without(evidence, learnt, out, machines) for out in places]) if known > 1 else true[:0]
    surprises = true[: len(left_out)] - left_out
    floored = bool((evidence.whole[:, 0] <= np.log(FLOOR)).any())
    gains = _first_speed_ups(true, left_out)
    misses = gains - _first_speed_ups(left_out, left_out)
    efficiencies = worlds.efficiencies * working
    chance = _chance_to_win(efficiencies, worlds.chances, misses) if len(rows) > 1 else 0.0
    proposals = portfolio(efficiencies, worlds.chances, count, (0,) if chance < 0.5 else ())
    return Transfer(rows, worlds.expected, surprises, proposals, gains, misses, chance, floored, known)


def portfolio(
    efficiencies: FloatArray, chances: FloatArray, count: int, chosen: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """Choose configurations so that in every possible world one of them is good; return their indexes, the best first.

    The default, index 0, is measured anyway, so it is only in the result if it was `chosen` before.

    Each is chosen for its mean improvement over those chosen before: this greedy choice is within 1 - 1/e of the best
    set (Nemhauser, Wolsey & Fisher 1978).

    Args:
        efficiencies: The efficiency of each configuration in w worlds, (w, n).
        chances: The chances of the worlds, (w,).
        count: The most configurations to choose.
        chosen: Indexes that come first.
    """
    alone = _TIE_BREAK * (chances @ efficiencies)
    left = np.arange(efficiencies.shape[1]) > 0
    while len(chosen) < count and left.any():
        best = efficiencies[:, list(chosen)].max(axis=1, initial=0.0)
        gains = chances @ np.maximum(efficiencies, best[:, None]) + alone
        chosen = (*chosen, int(np.where(left, gains, -1.0).argmax()))
        left[chosen[-1]] = False
    return chosen


def _without(evidence: Evidence, learnt: Evidence, out: int, machines: Sequence[int]) -> FloatArray:
    """Return the expected efficiencies, (n,), of a source, predicted from other machines."""
    others = [place for place, machine in enumerate(machines) if machine != machines[out]]
    return Worlds.of(evidence, learnt, others, out).expected


def _first_speed_ups(efficiencies: FloatArray, guessed: FloatArray) -> FloatArray:
    """Return the logarithms of the speed-ups over the default, (m,), of the best other configuration by `guessed`.

    They are 0 if there is no other.
    """
    if guessed.shape[1] < 2:
        return np.zeros(len(guessed))
    first = guessed[:, 1:].argmax(axis=1) + 1
    speed_ups: FloatArray = np.log(efficiencies[np.arange(len(first)), first] / efficiencies[: len(first), 0])
    return speed_ups


def _chance_to_win(efficiencies: FloatArray, chances: FloatArray, misses: FloatArray) -> float:
    """Return the chance that the best configuration beats the default, the first.

    It is the mean of the chance over the worlds, (w, n) with their `chances`, and of the chance if the prediction
    misses as it did on known machines, (m,).
    """
    worlds = np.maximum(efficiencies, np.exp(_NOTHING))
    expected = chances @ worlds
    best = int(expected[1:].argmax()) + 1
    in_worlds = float(chances @ norm.cdf(np.log(worlds[:, best] / worlds[:, 0]) / _FURTHER))
    said = float(np.log(expected[best] / expected[0]))
    by_misses = np.append(norm.cdf((said + misses) / _FURTHER), norm.cdf((said + _USUAL_MISS) / _USUAL_SPREAD))
    return (in_worlds + float(by_misses.mean())) / 2.0


def _worth_learning(evidence: Evidence) -> npt.NDArray[np.intp]:
    known = np.flatnonzero(np.any(~np.isnan(evidence.known), axis=0))
    if len(known) <= _LEARNT:
        return known
    logs = np.where(np.isnan(evidence.known), np.log(FLOOR), evidence.known)
    best = np.unique(np.argsort(-logs, axis=1)[:, : int(_BEST_SHARE * _LEARNT)])
    others = np.setdiff1d(known, best)
    drawn = np.random.default_rng(0).permutation(others)[: max(0, _LEARNT - len(best))]
    return np.union1d(best, drawn)
