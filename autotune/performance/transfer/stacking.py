"""Stacking: the expected efficiency of a configuration on a machine, by its efficiencies on other machines.

XGBoost learns it by leaving each machine out in turn: from statistics of the others' efficiencies, which enter
monotonically, and from the traits of the configuration. Stacked generalisation: Wolpert (1992).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost

from autotune.performance.regression.features import FloatArray

_BAGS = 3
_ROUNDS = 150
_SETTINGS = {
    "max_depth": 3,
    "eta": 0.05,
    "subsample": 0.7,
    "colsample_bytree": 0.7,
    "nthread": 1,
    "verbosity": 0,
}
# The least weight of a leaf: with a few dozen configurations each of them counts.
_ROWS_OF_A_LEAF, _LARGEST_LEAF = 1_000, 20.0
_LEAST_EFFICIENCY = 0.05
# Trees are steps: configurations with equal predictions are ranked by the mean over machines.
_TIE_BREAK = 1e-3


@dataclass(frozen=True, eq=False)
class StackEvidence:
    """The logarithms of efficiency of n configurations on m machines.

    `known`, (m, n), is NaN where nothing was measured; `whole`, (m, n), has the values of `smooth`, (m, n), there.
    `near`, (m + 1, m + 1), are squared distances between machines, the last being the machine to predict; `vendors`
    are m + 1 words; `traits`, (n, d), are those of the configurations.
    """

    known: FloatArray
    whole: FloatArray
    smooth: FloatArray
    near: FloatArray
    vendors: tuple[str, ...]
    traits: FloatArray

    def at(self, places: npt.NDArray[np.intp]) -> "StackEvidence":
        """Return the evidence of some of the configurations."""
        return StackEvidence(
            self.known[:, places],
            self.whole[:, places],
            self.smooth[:, places],
            self.near,
            self.vendors,
            self.traits[places],
        )


@dataclass(frozen=True, eq=False)
class Stack:
    """Trees that predict each of the `sources`, indices of machines, from the others."""

    sources: tuple[int, ...]
    boosters: tuple[xgboost.Booster, ...]

    @classmethod
    def fitted(cls, evidence: StackEvidence, sources: Sequence[int]) -> "Stack":
        """Fit on at least two machines."""
        xs, ys, weights = [], [], []
        for source in sources:
            others = [other for other in sources if other != source]
            statistics = _statistics(evidence, others, source)
            there = ~np.isnan(evidence.known[source])
            logs = evidence.known[source][there]
            xs.append(np.column_stack([statistics, evidence.traits])[there])
            ys.append(np.exp(logs))
            # Good configurations matter most: good on the machine itself, or on the others.
            weights.append(np.exp(np.maximum(logs, statistics[there, 0])))
        data = xgboost.DMatrix(np.concatenate(xs), np.concatenate(ys), weight=np.concatenate(weights))
        count = xs[0].shape[1] - evidence.traits.shape[1]
        rising = (*[1] * count, *[0] * evidence.traits.shape[1])
        leaf = float(np.clip(data.num_row() / _ROWS_OF_A_LEAF, 1.0, _LARGEST_LEAF))
        settings = {**_SETTINGS, "monotone_constraints": rising, "min_child_weight": leaf}
        boosters = [xgboost.train({**settings, "seed": bag}, data, _ROUNDS) for bag in range(_BAGS)]
        return cls(tuple(sources), tuple(boosters))

    def predict(self, evidence: StackEvidence, target: int) -> FloatArray:
        """Return the expected efficiencies, (n,), on the machine with index `target`."""
        statistics = _statistics(evidence, self.sources, target)
        x = xgboost.DMatrix(np.column_stack([statistics, evidence.traits]))
        predicted = np.mean([booster.predict(x) for booster in self.boosters], axis=0).astype(float)
        efficiency: FloatArray = np.clip(predicted + _TIE_BREAK * statistics[:, 0], _LEAST_EFFICIENCY, 1.0)
        return efficiency


def _statistics(evidence: StackEvidence, sources: Sequence[int], target: int) -> FloatArray:
    """Return statistics of each configuration over machines, (n, 12): columns in which more is better."""
    whole, smooth = evidence.whole[list(sources)], evidence.smooth[list(sources)]
    weights = np.exp(-evidence.near[target, list(sources)] / 2.0)
    weights /= weights.sum()
    vendor = evidence.vendors[target]
    alike = [index for index, source in enumerate(sources) if evidence.vendors[source] == vendor]
    alike = alike or list(range(len(sources)))
    ordered = np.sort(whole, axis=0)
    return np.column_stack(
        [
            whole.mean(axis=0),
            smooth.mean(axis=0),
            ordered[0],
            ordered[-1],
            weights @ whole,
            weights @ smooth,
            whole[int(weights.argmax())],
            whole[alike].mean(axis=0),
            ordered[len(ordered) // 2],
            ordered[:2].mean(axis=0),
            smooth[alike].mean(axis=0),
            whole[alike].min(axis=0),
        ]
    )
