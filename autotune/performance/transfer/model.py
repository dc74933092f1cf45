"""Transfer: predict the best configurations of a space on a machine from measurements of the space on other machines.

The model predicts no times, but how near a configuration comes to the best, in each of several possible worlds: in
some the machine is like those that share a fact with it, in one it is as trees predict from all facts, and in the
others it is like one of the known machines. To estimate its uncertainty, it also predicts each known source without the
source's own data; if the machine is new, without any data of the source's machine.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost
from scipy.stats import norm

from autotune.performance.regression.prediction import Interval
from autotune.performance.regression.similarity import fact_columns, groups_sharing_word, squared_distances
from autotune.performance.transfer.sources import FLOOR, Source
from autotune.records.measurement import Facts, Setting
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
# Relative probabilities of the kinds of worlds. Halving or doubling them changes little.
_BY_TREES, _ALIKE, _SAME = 1.0, 1.0, 0.3
# With fewer machines, trees cannot learn how machines differ.
_MACHINES_TO_LEARN = 3
_BAGS = 4
_ROUNDS = 150
_BOOSTED = {
    "max_depth": 6,
    "eta": 0.1,
    "subsample": 0.7,
    "colsample_bytree": 0.7,
    "nthread": 1,
    "verbosity": 0,
}


@dataclass(frozen=True, eq=False)
class Evidence:
    """The logarithms of efficiency of n configurations on m machines, and the facts of both.

    Attributes:
        known: Measured logarithms, (m, n); NaN for unmeasured ones.
        whole: Measured logarithms, (m, n), with those of `smooth` for unmeasured ones.
        smooth: Smoothed logarithms, (m, n).
        facts: The facts of the m machines, and last those of the machine to predict.
        traits: The traits of the configurations, (n, d).
    """

    known: FloatArray
    whole: FloatArray
    smooth: FloatArray
    facts: tuple[Facts, ...]
    traits: FloatArray

    @classmethod
    def of(cls, space: Space, setting: Setting, sources: Sequence[Source], rows: Indices) -> "Evidence":
        """Return the evidence of `sources` about `rows`, (n, p), for a setting."""
        known = np.array([source.efficiencies_at(rows) for source in sources])
        smooth = np.array([source.smooth_at(rows) for source in sources])
        facts = (*(source.setting.machine_facts for source in sources), setting.machine_facts)
        return cls(known, np.where(np.isnan(known), smooth, known), smooth, facts, space.traits_of(rows))

    def at(self, places: npt.NDArray[np.intp]) -> "Evidence":
        """Return the evidence of the configurations at the indexes `places`."""
        return Evidence(
            self.known[:, places],
            self.whole[:, places],
            self.smooth[:, places],
            self.facts,
            self.traits[places],
        )


@dataclass(frozen=True, eq=False)
class Worlds:
    """The efficiencies of n configurations in w worlds, (w, n), with 1 for the best, and the worlds' chances, (w,)."""

    efficiencies: FloatArray
    chances: FloatArray

    @classmethod
    def of(cls, evidence: Evidence, learnt: Evidence, sources: Sequence[int], target: int) -> "Worlds":
        """Return the possible worlds of a machine, given some of the known ones.

        Args:
            evidence: The evidence of the configurations to predict.
            learnt: The evidence of the configurations that trees learn from.
            sources: Indexes of known machines, at least one.
            target: The index of the machine.
        """
        same = np.exp(evidence.whole[list(sources)])
        if len(sources) < _MACHINES_TO_LEARN:
            far = squared_distances([evidence.facts[machine] for machine in (*sources, target)])[-1, :-1]
            near = np.exp(-far / 2.0).tolist()
            return cls._with([(weight, world[None, :]) for weight, world in zip(near, same, strict=True)])
        groups = groups_sharing_word([evidence.facts[source] for source in sources], evidence.facts[target])
        smooth = np.exp(evidence.smooth[list(sources)])
        alike = np.array([smooth[list(group)].mean(axis=0) for group in groups or [tuple(range(len(sources)))]])
        trees = _Trees.fit(learnt, sources).predict(evidence, target)
        return cls._with([(_BY_TREES, trees[None, :]), (_ALIKE, alike), (_SAME, same)])

    @classmethod
    def _with(cls, kinds: Sequence[tuple[float, FloatArray]]) -> "Worlds":
        efficiencies = np.concatenate([worlds / worlds.max(axis=1, keepdims=True) for _, worlds in kinds])
        chances = np.concatenate([np.full(len(worlds), chance / len(worlds)) for chance, worlds in kinds])
        return cls(efficiencies, chances / chances.sum())

    @property
    def expected(self) -> FloatArray:
        """The expected efficiency of each configuration, (n,)."""
        expected: FloatArray = self.chances @ self.efficiencies
        return expected


@dataclass(frozen=True, eq=False)
class _Trees:
    """Boosted trees from the traits of a configuration and the facts of a machine to the logarithm of efficiency."""

    facts: FloatArray
    boosters: tuple[xgboost.Booster, ...]

    @classmethod
    def fit(cls, evidence: Evidence, sources: Sequence[int]) -> "_Trees":
        """Fit to the measurements on some of the known machines."""
        facts = fact_columns(evidence.facts)
        there = [~np.isnan(evidence.known[source]) for source in sources]
        x = [_columns(evidence.traits[mask], facts[source]) for source, mask in zip(sources, there, strict=True)]
        y = [evidence.known[source][mask] for source, mask in zip(sources, there, strict=True)]
        data = xgboost.DMatrix(np.concatenate(x), np.concatenate(y))
        return cls(facts, tuple(xgboost.train({**_BOOSTED, "seed": bag}, data, _ROUNDS) for bag in range(_BAGS)))

    def predict(self, evidence: Evidence, target: int) -> FloatArray:
        """Return the efficiencies, (n,), on the machine with index `target`."""
        x = xgboost.DMatrix(_columns(evidence.traits, self.facts[target]))
        logs = np.mean([booster.predict(x) for booster in self.boosters], axis=0)
        efficiency: FloatArray = np.exp(logs.astype(float))
        return efficiency


def _columns(traits: FloatArray, facts: FloatArray) -> npt.NDArray[np.float64]:
    return np.column_stack([traits, np.broadcast_to(facts, (len(traits), len(facts)))])


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
