"""A log-linear model: the logarithm of the run time as a weighted sum of features, the weights shrunk.

Ridge regression (Hoerl & Kennard 1970); how much is shrunk is chosen by leaving whole groups out, for that is how the
model is used. It extrapolates as power laws do, and degrades to a constant where there are few data.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotune.performance.features import Features, FloatArray, groups, taken
from spaces.quantities import Columns

_SHRINKAGES = np.logspace(-3.0, 3.0, 13)
_FOLDS = 10
# A fold that is far off (a machine like no other) must not choose the shrinkage alone.
_FARTHEST = 3.0


@dataclass(frozen=True)
class LogLinear:
    """Weights, (d,), of standardised features, and the mean that they start from."""

    features: Features
    mean: float
    weights: FloatArray

    @classmethod
    def fitted(cls, columns: Columns, y: FloatArray, labels: npt.NDArray[np.object_]) -> "LogLinear":
        """Fit to `y`, (n,), the logarithms of the values at `columns`; `labels`, (n,), tell what belongs together."""
        errors = np.zeros(len(_SHRINKAGES))
        for out in groups(labels, _FOLDS):
            if out.all() or (~out).sum() < 4:
                continue
            kept, left = np.flatnonzero(~out), np.flatnonzero(out)
            features, mean, solutions = _solved(taken(columns, kept), y[kept], _SHRINKAGES)
            guesses = mean + features.of(taken(columns, left)) @ solutions
            errors += np.minimum(np.abs(guesses - y[left, None]), _FARTHEST).sum(axis=0)
        best = int(errors.argmin()) if errors.any() else len(_SHRINKAGES) // 2
        features, mean, solutions = _solved(columns, y, _SHRINKAGES[best : best + 1])
        return cls(features, mean, solutions[:, 0])

    def predict(self, columns: Columns) -> FloatArray:
        """Return the logarithms, (m,), that are expected at `columns`."""
        found: FloatArray = self.mean + self.features.of(columns) @ self.weights
        return found


def _solved(columns: Columns, y: FloatArray, shrinkages: FloatArray) -> tuple[Features, float, FloatArray]:
    """Return the features, the mean, and the weights (d, s) for as many shrinkages."""
    features = Features.learnt(columns)
    x, mean = features.of(columns), float(y.mean())
    u, d, vt = np.linalg.svd(x, full_matrices=False)
    along = (u.T @ (y - mean))[:, None] * d[:, None] / (d[:, None] ** 2 + shrinkages[None, :])
    return features, mean, vt.T @ along
