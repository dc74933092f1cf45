"""A log-linear model: the logarithm of a value as a weighted sum of features and their products, with shrunk weights.

Ridge regression (Hoerl & Kennard 1970) with the shrinkage of greatest evidence (MacKay, "Bayesian interpolation",
1992). It extrapolates like power laws whose exponents may depend on words, and becomes a constant with few data.
"""

from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.table import Places, Table

_SHRINKAGES = np.logspace(-3.0, 2.0, 16)
# The prior spread of products relative to features, and of the constant, which is hardly shrunk.
_OF_PRODUCTS = 0.7
_OF_CONSTANT = 10.0
# Keep this many products, those that vary most: more cost time and add little.
_PRODUCTS = 500


@dataclass(frozen=True)
class LogLinear:
    """Weights, (1 + d + k,), of the constant, of d features, and of k products of the features at `left` and `right`.

    `evidence` is the logarithm of the likelihood of the data under the prior, up to a constant.
    """

    features: Features
    left: Places
    right: Places
    mean: float
    weights: FloatArray
    evidence: float

    @classmethod
    def fit(cls, table: Table, y: FloatArray, weights: FloatArray, products: bool) -> "LogLinear":
        """Fit to `y`, (n,), the logarithms of values, of cases with `weights`, (n,)."""
        features = Features.learn(table.columns)
        # Try with and without the numbers that some cases lack: with few rows, fewer features may fit better.
        fits = [cls._fit(subset, table, y, weights, products) for subset in dict.fromkeys((features, _whole(features)))]
        return max(fits, key=lambda fit: fit.evidence)

    @classmethod
    def _fit(cls, features: Features, table: Table, y: FloatArray, weights: FloatArray, products: bool) -> "LogLinear":
        x = features.of(table.columns)
        left, right = _pairs(features, x) if products else (np.zeros(0, np.intp), np.zeros(0, np.intp))
        mean = float(np.average(y, weights=weights))
        roots = np.sqrt(weights / weights.mean())
        a = _design(x, left, right) * roots[:, None]
        return cls(features, left, right, mean, *_shrunk(a, (y - mean) * roots))

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,)."""
        logarithms: FloatArray = self.mean + self._design_of(table) @ self.weights
        return logarithms

    def _design_of(self, table: Table) -> FloatArray:
        return _design(self.features.of(table.columns), self.left, self.right)


def _design(x: FloatArray, left: Places, right: Places) -> FloatArray:
    return np.hstack([np.full((len(x), 1), _OF_CONSTANT), x, _OF_PRODUCTS * x[:, left] * x[:, right]])


def _pairs(features: Features, x: FloatArray) -> tuple[Places, Places]:
    """Return the pairs of features to multiply: each word with each number and with each word of other columns."""
    numbers = len(features.numbers)
    of = np.array([index for index, word in enumerate(features.words) for _ in word.words], dtype=np.intp)
    i, j = np.meshgrid(np.arange(len(of)), np.arange(numbers), indexing="ij")
    k, m = np.nonzero(of[:, None] > of[None, :])
    left = np.concatenate([numbers + i.ravel(), numbers + k]).astype(np.intp)
    right = np.concatenate([j.ravel(), numbers + m]).astype(np.intp)
    spread = np.array([(x[:, a] * x[:, b]).std() for a, b in zip(left, right, strict=True)])
    kept = np.sort(np.argsort(-spread, kind="stable")[:_PRODUCTS])
    return left[kept], right[kept]


def _whole(features: Features) -> Features:
    """Return the features without numbers that some cases lack."""
    names = {word.name for word in features.words} & {number.name for number in features.numbers}
    numbers = tuple(number for number in features.numbers if number.name not in names)
    return Features(numbers, tuple(word for word in features.words if word.name not in names))


def _shrunk(a: FloatArray, r: FloatArray) -> tuple[FloatArray, float]:
    """Return the weights, (d,), and the evidence, with the shrinkage l that makes `r`, (n,), most likely.

    The covariance of `r` is s2 (1 + a a' / l).
    """
    n = len(r)
    squares, directions = _axes(a)
    along = (directions.T @ (a.T @ r)) / np.sqrt(squares)
    rest = max(float(r @ r - along @ along), 0.0)
    evidence = []
    for shrinkage in _SHRINKAGES:
        variance = (float((along**2 * shrinkage / (squares + shrinkage)).sum()) + rest) / n
        evidence.append(-0.5 * (n * np.log(variance + 1e-12) + float(np.log1p(squares / shrinkage).sum())))
    best = _SHRINKAGES[int(np.argmax(evidence))]
    weights: FloatArray = directions @ (np.sqrt(squares) / (squares + best) * along)
    return weights, float(max(evidence))


def _axes(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the squares of the singular values that are not 0, (k,), and their directions, (d, k)."""
    if len(a) < a.shape[1]:
        _, values, vt = np.linalg.svd(a, full_matrices=False)
        squares, directions = values**2, vt.T
    else:
        squares, directions = np.linalg.eigh(a.T @ a)
    kept = squares > 1e-11 * squares.max()
    return squares[kept], directions[:, kept]
