"""Trees: efficiencies of configurations on a machine, learned from other machines and their facts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.similarity import fact_columns
from autotune.performance.transfer.evidence import Evidence

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
class Trees:
    """Boosted trees from the traits of a configuration and the facts of a machine to the logarithm of efficiency."""

    facts: FloatArray
    boosters: tuple[xgboost.Booster, ...]

    @classmethod
    def fitted(cls, evidence: Evidence, sources: Sequence[int]) -> "Trees":
        """Fit on what was measured on some of the known machines."""
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
