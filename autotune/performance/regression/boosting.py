"""Boosted trees on the residuals of another model: XGBoost (Chen & Guestrin, KDD 2016)."""

from dataclasses import dataclass

import numpy as np
import xgboost

from autotune.performance.regression.features import Features, FloatArray
from spaces.expressions.quantities import Columns

ROUNDS = (0, 40, 120)
"""Numbers of trees to choose from; 0 is among them, since trees do not extrapolate."""

_LEAST = 40  # of fewer cases trees learn nothing that holds elsewhere
_SETTINGS = {
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


@dataclass(frozen=True)
class Trees:
    """Trees fitted to residuals; `booster` is None where there are too few cases."""

    features: Features
    booster: xgboost.Booster | None

    @classmethod
    def fitted(
        cls, columns: Columns, residuals: FloatArray, weights: FloatArray | None = None, most: int = max(ROUNDS)
    ) -> "Trees":
        """Fit to `residuals`, (n,), of cases with `weights`, (n,), with the `most` rounds that `predict` may use."""
        features = Features.learnt(columns)
        if len(residuals) < _LEAST or not features.names or most == 0:
            return cls(features, None)
        data = xgboost.DMatrix(features.raw(columns), residuals, weight=weights)
        return cls(features, xgboost.train(_SETTINGS, data, most))

    def predict(self, columns: Columns, rounds: int) -> FloatArray:
        """Return what the first `rounds` trees add, (m,)."""
        x = self.features.raw(columns)
        if self.booster is None or rounds == 0:
            return np.zeros(len(x))
        sums: FloatArray = self.booster.predict(xgboost.DMatrix(x), iteration_range=(0, rounds)).astype(float)
        return sums

    def contributions(self, columns: Columns, rounds: int) -> FloatArray:
        """Return what each feature adds to each case, (m, d): SHAP values of trees (Lundberg et al. 2020)."""
        x = self.features.raw(columns)
        if self.booster is None or rounds == 0:
            return np.zeros(x.shape)
        values = self.booster.predict(xgboost.DMatrix(x), pred_contribs=True, iteration_range=(0, rounds))
        contributions: FloatArray = values[:, :-1].astype(float)
        return contributions
