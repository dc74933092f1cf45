"""Learners: a log-linear model, and trees by XGBoost (Chen & Guestrin, KDD 2016), fitted to features of cases.

Columns of positive numbers become logarithms, so that a power law is a straight line; other numbers stay as they are.
Each word becomes a column. A column that may lack values gets a second one that marks the missing values.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost

from autotune.performance.regression.table import Places, Table
from spaces.expressions.quantities import Columns, FloatArray

_SHRINKAGES = np.logspace(-3.0, 2.0, 16)
# The prior spread of products relative to features, and of the constant, which is hardly shrunk.
_OF_PRODUCTS = 0.7
_OF_CONSTANT = 10.0
# Keep this many products, those that vary most: more cost time and add little.
_PRODUCTS = 500
_TREES = 120
Column = npt.NDArray[np.object_] | FloatArray
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
class _Number:
    """A column of numbers: its `mean` and `spread` in the training cases, of logarithms if `positive`."""

    name: str
    positive: bool
    mean: float
    spread: float

    def raw(self, columns: Columns) -> FloatArray:
        """Return the column, (n, 1); NaN for a missing value, or for one without a logarithm if `positive`."""
        column = columns.get(self.name)
        if column is None or column.dtype == object:
            return np.full((_count(columns), 1), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.where(column > 0.0, np.log(column), np.nan) if self.positive else column)[:, None]

    def scaled(self, columns: Columns) -> FloatArray:
        """Return the standardised column, (n, 1): 0 for the mean, and for a missing value."""
        return np.nan_to_num((self.raw(columns) - self.mean) / self.spread)


@dataclass(frozen=True)
class _Word:
    """A column of words: the words in the training cases, and the share of each; "" stands for no value."""

    name: str
    words: tuple[str, ...]
    shares: tuple[float, ...]

    def raw(self, columns: Columns) -> FloatArray:
        """Return a column for each word, (n, w): 1 if it is the value, else 0; an unknown word gives zeros."""
        texts = _texts(columns.get(self.name, np.full(_count(columns), None, dtype=object)))
        return np.column_stack([texts == word for word in self.words]).astype(float)

    def scaled(self, columns: Columns) -> FloatArray:
        """Return the columns without their means, (n, w): zeros for an unknown word."""
        raw = self.raw(columns)
        scaled: FloatArray = (raw - np.array(self.shares)) * raw.any(axis=1, keepdims=True)
        return scaled


@dataclass(frozen=True)
class Features:
    """The columns that vary among the training cases, as numbers and words."""

    numbers: tuple[_Number, ...]
    words: tuple[_Word, ...]

    @classmethod
    def learn(cls, columns: Columns) -> "Features":
        """Learn the features of `columns`, (n,) each; constant columns are left out."""
        numbers = tuple(number for name in columns if (number := _number(name, columns[name])) is not None)
        words = tuple(word for name in columns if (word := _word(name, columns[name])) is not None)
        return cls(numbers, words)

    def scaled(self, columns: Columns) -> FloatArray:
        """Return features for linear models, (n, d)."""
        blocks = [number.scaled(columns) for number in self.numbers] + [word.scaled(columns) for word in self.words]
        return np.hstack(blocks) if blocks else np.zeros((_count(columns), 0))

    def raw(self, columns: Columns) -> FloatArray:
        """Return features for trees, (n, d); NaN for a missing number."""
        blocks = [number.raw(columns) for number in self.numbers] + [word.raw(columns) for word in self.words]
        return np.hstack(blocks) if blocks else np.zeros((_count(columns), 0))


def _number(name: str, column: Column) -> _Number | None:
    there = column[~np.isnan(column)] if column.dtype != object else np.zeros(0)
    if len(there) == 0 or there.min() == there.max():
        return None
    positive = bool((there > 0.0).all())
    values = np.log(there) if positive else there
    return _Number(name, positive, float(values.mean()), float(values.std()))


def _word(name: str, column: Column) -> _Word | None:
    texts = _texts(column)
    values = sorted(set(texts.tolist()))
    return (
        _Word(name, tuple(values), tuple(float((texts == one).mean()) for one in values)) if len(values) > 1 else None
    )


def _texts(column: Column) -> npt.NDArray[np.object_]:
    """Return a column as words; a number becomes `set`, a missing value the empty word."""
    if column.dtype != object:
        return np.where(np.isnan(column), "", "set").astype(object)
    texts = np.array(column, dtype=object)
    # Compare elementwise without a loop: there may be 100,000 values.
    texts[texts == np.array(None)] = ""
    return texts


def _count(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


@dataclass(frozen=True)
class LogLinear:
    """A log-linear model: the logarithm of a value as a weighted sum of features and products, with shrunk weights.

    Ridge regression (Hoerl & Kennard 1970) with the shrinkage of greatest evidence (MacKay, "Bayesian interpolation",
    1992). It extrapolates like power laws whose exponents may depend on words, and becomes a constant with few data.

    The weights, (1 + d + k,), are of the constant, of d features, and of k products of those at `left` and `right`.

    `evidence` is the logarithm of the likelihood of the data under the prior, up to a constant.
    """

    features: Features
    left: Places
    right: Places
    mean: float
    weights: FloatArray
    evidence: float

    @classmethod
    def fit(cls, table: Table, y: FloatArray, weights: FloatArray) -> "LogLinear":
        """Fit to `y`, (n,), the logarithms of values, of cases with `weights`, (n,)."""
        features = Features.learn(table.columns)
        # Try with and without the numbers that some cases lack: with few rows, fewer features may fit better.
        fits = [cls._fit(subset, table, y, weights) for subset in dict.fromkeys((features, _whole(features)))]
        return max(fits, key=lambda fit: fit.evidence)

    @classmethod
    def _fit(cls, features: Features, table: Table, y: FloatArray, weights: FloatArray) -> "LogLinear":
        x = features.scaled(table.columns)
        left, right = _pairs(features, x)
        mean = float(np.average(y, weights=weights))
        roots = np.sqrt(weights / weights.mean())
        a = _design(x, left, right) * roots[:, None]
        return cls(features, left, right, mean, *_shrunk(a, (y - mean) * roots))

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,)."""
        design = _design(self.features.scaled(table.columns), self.left, self.right)
        logarithms: FloatArray = self.mean + design @ self.weights
        return logarithms


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


@dataclass(frozen=True)
class Trees:
    """Boosted trees fitted to residuals, since trees do not extrapolate; `booster` is None if there were too few."""

    features: Features
    booster: xgboost.Booster | None

    @classmethod
    def fit(cls, table: Table, residuals: FloatArray, weights: FloatArray) -> "Trees":
        """Fit to `residuals`, (n,), of cases with `weights`, (n,)."""
        features = Features.learn(table.columns)
        if len(residuals) < _LEAST_BOOSTED or not (features.numbers or features.words):
            return cls(features, None)
        data = xgboost.DMatrix(features.raw(table.columns), residuals, weight=weights)
        return cls(features, xgboost.train(_BOOSTED, data, _TREES))

    def predict(self, table: Table) -> FloatArray:
        """Return the sums of the trees, (m,)."""
        if self.booster is None:
            return np.zeros(len(table))
        sums: FloatArray = self.booster.predict(xgboost.DMatrix(self.features.raw(table.columns))).astype(float)
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
        if len(y) < _LEAST_OF_FOREST or not (features.numbers or features.words):
            return None
        data = xgboost.DMatrix(features.raw(table.columns), y - mean, weight=weights)
        return cls(features, mean, xgboost.train({**_FOREST, "base_score": 0.0}, data, 1))

    def predict(self, table: Table) -> FloatArray:
        """Return the expected logarithms, (m,)."""
        found = self.trees.predict(xgboost.DMatrix(self.features.raw(table.columns)))
        logarithms: FloatArray = self.mean + found.astype(float)
        return logarithms
