"""Stacking: how well a configuration should do on a machine, given what other machines say of it.

XGBoost learns it by leaving each machine out in turn: from statistics of what the others say, which it may only trust
(they enter monotonically), and from the traits of the configuration. Stacked generalisation: Wolpert (1992).
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
# The least weight of a leaf: of a few dozen configurations every one tells something.
_ROWS_OF_A_LEAF, _LARGEST_LEAF = 1_000, 20.0
_LEAST_EFFICIENCY = 0.05
# Trees are steps: what is equal to them is told apart by the mean over machines.
_TIE_BREAK = 1e-3


@dataclass(frozen=True, eq=False)
class StackEvidence:
    """What m machines say of n configurations, as logarithms of efficiency.

    `known`, (m, n), is NaN where nothing was measured; `whole`, (m, n), has there what is in `smooth`, (m, n). `near`,
    (m + 1, m + 1), are squared distances between machines, the last being the one that is asked about; `vendors` are
    m + 1 words; `traits`, (n, d), are those of the configurations.
    """

    known: FloatArray
    whole: FloatArray
    smooth: FloatArray
    near: FloatArray
    vendors: tuple[str, ...]
    traits: FloatArray

    def at(self, places: npt.NDArray[np.intp]) -> "StackEvidence":
        """Return the same of some of the configurations."""
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
    """Trees that were fitted on what `sources`, places of machines, say of one another."""

    sources: tuple[int, ...]
    boosters: tuple[xgboost.Booster, ...]

    @classmethod
    def fitted(cls, evidence: StackEvidence, sources: Sequence[int]) -> "Stack":
        """Fit on at least two machines."""
        xs, ys, weights = [], [], []
        for source in sources:
            others = [other for other in sources if other != source]
            told = _statistics(evidence, others, source)
            there = ~np.isnan(evidence.known[source])
            logs = evidence.known[source][there]
            xs.append(np.column_stack([told, evidence.traits])[there])
            ys.append(np.exp(logs))
            # What is good somewhere matters: either on the machine, or by what the others say.
            weights.append(np.exp(np.maximum(logs, told[there, 0])))
        data = xgboost.DMatrix(np.concatenate(xs), np.concatenate(ys), weight=np.concatenate(weights))
        count = xs[0].shape[1] - evidence.traits.shape[1]
        rising = (*[1] * count, *[0] * evidence.traits.shape[1])
        leaf = float(np.clip(data.num_row() / _ROWS_OF_A_LEAF, 1.0, _LARGEST_LEAF))
        settings = {**_SETTINGS, "monotone_constraints": rising, "min_child_weight": leaf}
        boosters = [xgboost.train({**settings, "seed": bag}, data, _ROUNDS) for bag in range(_BAGS)]
        return cls(tuple(sources), tuple(boosters))

    def predict(self, evidence: StackEvidence, target: int) -> FloatArray:
        """Return the efficiency, (n,), that is expected on the machine at place `target`."""
        told = _statistics(evidence, self.sources, target)
        x = xgboost.DMatrix(np.column_stack([told, evidence.traits]))
        found = np.mean([booster.predict(x) for booster in self.boosters], axis=0).astype(float)
        efficiency: FloatArray = np.clip(found + _TIE_BREAK * told[:, 0], _LEAST_EFFICIENCY, 1.0)
        return efficiency


def _statistics(evidence: StackEvidence, sources: Sequence[int], target: int) -> FloatArray:
    """Return what machines say of each configuration, (n, 12): columns in which more is better."""
    whole, smooth = evidence.whole[list(sources)], evidence.smooth[list(sources)]
    weights = np.exp(-evidence.near[target, list(sources)] / 2.0)
    weights /= weights.sum()
    vendor = evidence.vendors[target]
    alike = [place for place, source in enumerate(sources) if evidence.vendors[source] == vendor]
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
