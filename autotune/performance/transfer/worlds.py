"""Possible worlds: sets of efficiencies that configurations may have on a machine without measurements.

In some worlds the machine is like those that share a fact with it, in one it is as trees predict from all facts, and in
the others it is like one of the known machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost

from autotune.performance.regression.similarity import fact_columns, groups_sharing_word, squared_distances
from autotune.performance.transfer.sources import Source
from autotune.records.measurement import Facts, Setting
from spaces import Space
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

# Relative probabilities of the kinds of worlds. Halving or doubling them changes little.
_LEARNT, _ALIKE, _SAME = 1.0, 1.0, 0.3
# With fewer machines, trees cannot learn how machines differ.
_LEARNT_FROM = 3
_BAGS = 4
_ROUNDS = 150
_SETTINGS = {
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
        if len(sources) < _LEARNT_FROM:
            far = squared_distances([evidence.facts[machine] for machine in (*sources, target)])[-1, :-1]
            near = np.exp(-far / 2.0).tolist()
            return cls._with([(weight, world[None, :]) for weight, world in zip(near, same, strict=True)])
        groups = groups_sharing_word([evidence.facts[source] for source in sources], evidence.facts[target])
        smooth = np.exp(evidence.smooth[list(sources)])
        alike = np.array([smooth[list(group)].mean(axis=0) for group in groups or [tuple(range(len(sources)))]])
        trees = _Trees.fit(learnt, sources).predict(evidence, target)
        return cls._with([(_LEARNT, trees[None, :]), (_ALIKE, alike), (_SAME, same)])

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
        return cls(facts, tuple(xgboost.train({**_SETTINGS, "seed": bag}, data, _ROUNDS) for bag in range(_BAGS)))

    def predict(self, evidence: Evidence, target: int) -> FloatArray:
        """Return the efficiencies, (n,), on the machine with index `target`."""
        x = xgboost.DMatrix(_columns(evidence.traits, self.facts[target]))
        logs = np.mean([booster.predict(x) for booster in self.boosters], axis=0)
        efficiency: FloatArray = np.exp(logs.astype(float))
        return efficiency


def _columns(traits: FloatArray, facts: FloatArray) -> npt.NDArray[np.float64]:
    return np.column_stack([traits, np.broadcast_to(facts, (len(traits), len(facts)))])
