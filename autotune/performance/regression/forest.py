"""A random forest (Breiman, Machine Learning 45, 2001): what a learner without assumptions says. Grown by XGBoost."""

from dataclasses import dataclass

import numpy as np
import xgboost

from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.table import Table

_LEAST = 10
_SETTINGS = {
    "num_parallel_tree": 100,
    "max_depth": 12,
    "subsample": 0.63,
    "colsample_bynode": 0.8,
    "eta": 1.0,
    "lambda": 0.01,
    "min_child_weight": 0.0,
    "nthread": 1,
    "seed": 0,
    "verbosity": 0,
}


@dataclass(frozen=True)
class Forest:
    """Trees fitted to the columns of a table, as they are, about the `mean` of the values."""

    features: Features
    mean: float
    trees: xgboost.Booster

    @classmethod
    def fitted(cls, table: Table, y: FloatArray, weights: FloatArray) -> "Forest | None":
        """Fit to `y`, (n,), the logarithms of values, of cases with `weights`, (n,); None where there are too few."""
        features, mean = Features.learnt(table.columns), float(np.average(y, weights=weights)) if len(y) else 0.0
        if len(y) < _LEAST or not features.names:
            return None
        data = xgboost.DMatrix(features.raw(table.columns), y - mean, weight=weights)
        return cls(features, mean, xgboost.train({**_SETTINGS, "base_score": 0.0}, data, 1))

    def predict(self, table: Table) -> FloatArray:
        """Return the logarithms, (m,), that are expected."""
        found = self.trees.predict(xgboost.DMatrix(self.features.raw(table.columns)))
        logarithms: FloatArray = self.mean + found.astype(float)
        return logarithms

    def difference(self, pair: Table) -> dict[str, float]:
        """Return the difference of two rows as a whole: a forest does not tell features apart."""
        first, second = self.predict(pair)
        return {"forest": float(first - second)}
