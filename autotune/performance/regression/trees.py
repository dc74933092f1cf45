"""Trees by XGBoost (Chen & Guestrin, KDD 2016).

Boosted trees on the residuals of another model, and a random forest (Breiman, Machine Learning 45, 2001), which makes
no assumptions on the form of the function.
"""

from dataclasses import dataclass

import numpy as np
import xgboost

from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.table import Table
from spaces.expressions.quantities import Columns

ROUNDS = (0, 40, 120)
"""Numbers of trees to choose from; they include 0, since trees do not extrapolate."""

_LEAST_BOOSTED = 40  # trees fitted to fewer cases do not generalise
_BOOSTED = {
    "max_depth": 3,
    "eta": 0.08,
    "subsample": 0.8,
    "colsample_bynode": 0.6,
    "min_child_weight": 3,
    "lambda": 2.0,
    "nthread": 1,
    "seed": 0,
    "verbosity": 0,
    "base_score": 0.0,
}
_LEAST_OF_FOREST = 10
_FOREST = {
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
class Trees:
    """Trees fitted to residuals; `booster` is None if there were too few cases."""

    features: Features
    booster: xgboost.Booster | None

    @classmethod
    def fit(
        cls, columns: Columns, residuals: FloatArray, weights: FloatArray | None = None, most: int = max(ROUNDS)
    ) -> "Trees":
        """Fit `most` rounds, the most that `predict` may use, to `residuals`, (n,), of cases with `weights`, (n,)."""
        features = Features.learn(columns)
        if len(residuals) < _LEAST_BOOSTED or not features.names or most == 0:
            return cls(features, None)
        data = xgboost.DMatrix(features.raw(columns), residuals, weight=weights)
        return cls(features, xgboost.train(_BOOSTED, data, most))

    def predict(self, columns: Columns, rounds: int) -> FloatArray:
        """Return the sum of the first `rounds` trees, (m,)."""
        x = self.features.raw(columns)
        if self.booster is None or rounds == 0:
            return np.zeros(len(x))
        sums: FloatArray = self.booster.predict(xgboost.DMatrix(x), iteration_range=(0, rounds)).astype(float)
        return sums


@dataclass(frozen=True)
class Forest:
    """A random forest fitted to the unscaled columns of a table and the values' differences from their `mean`."""

    features: Features
    mean: float
    trees: xgboost.Booster

    @classmethod
    def fit(cls, table: Table, y: FloatArray, weights: FloatArray) -> "Forest | None":
        """Fit to `y`, (n,), the logarithms of values, of cases with `weights`, (n,); None if there are too few."""
        features, mean = Features.learn(table.columns), float(np.average(y, weights=weights)) if len(y) else 0.0
        if len(y) < _LEAST_OF_FOREST or not features.names:
            return None
        data = xgboost.DMatrix(features.raw(table.columns), y - mean, weight=weights)
        return cls(features, mean, xgboost.train({**_FOREST, "base_score": 0.0}, data, 1))

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,)."""
        found = self.trees.predict(xgboost.DMatrix(self.features.raw(table.columns)))
        logarithms: FloatArray = self.mean + found.astype(float)
        return logarithms
