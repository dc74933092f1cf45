"""Features: columns of values as numbers for a model, learnt from the cases that the model is fitted on.

Columns of positive numbers become logarithms, so that a power law is a straight line; other numbers stay as they are.
Each word becomes a column. A column that may lack values gets a second one that marks the missing values.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spaces.expressions.quantities import Columns

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Number:
    """A column of numbers: its `mean` and `spread` in the training cases, of logarithms if `positive`."""

    name: str
    positive: bool
    mean: float
    spread: float
    low: float
    high: float

    def raw(self, columns: Columns) -> FloatArray:
        """Return the column, (n,); NaN for a missing value, or for one without a logarithm if `positive`."""
        column = columns.get(self.name)
        if column is None or column.dtype == object:
            return np.full(_count(columns), np.nan)
        if not self.positive:
            return column
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(column > 0.0, np.log(column), np.nan)


@dataclass(frozen=True)
class Word:
    """A column of words: the words in the training cases, and the share of each; "" stands for no value."""

    name: str
    words: tuple[str, ...]
    shares: tuple[float, ...]

    def raw(self, columns: Columns) -> FloatArray:
        """Return a column for each word, (n, w): 1 if it is the value, else 0; an unknown word gives zeros."""
        column = columns.get(self.name, np.full(_count(columns), None, dtype=object))
        texts = _texts(column)
        return np.column_stack([texts == word for word in self.words]).astype(float)


@dataclass(frozen=True)
class Features:
    """The columns that vary among the training cases, as numbers and words."""

    numbers: tuple[Number, ...]
    words: tuple[Word, ...]

    @classmethod
    def learn(cls, columns: Columns) -> "Features":
        """Learn the features of `columns`, (n,) each; constant columns are left out."""
        numbers = tuple(number for name in columns if (number := _number(name, columns)) is not None)
        words = tuple(word for name in columns if (word := _word(name, columns)) is not None)
        return cls(numbers, words)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of `of` and of `raw`."""
        return (
            *(number.name for number in self.numbers),
            *(f"{word.name}={value or 'unset'}" for word in self.words for value in word.words),
        )

    def of(self, columns: Columns) -> FloatArray:
        """Return standardised features, (n, d), for linear models: 0 stands for the mean, and for no value."""
        parts = [(number.raw(columns) - number.mean) / number.spread for number in self.numbers]
        blocks = [np.nan_to_num(part)[:, None] for part in parts]
        blocks += [word.raw(columns) - np.array(word.shares) for word in self.words]
        return np.hstack(blocks) if blocks else np.zeros((_count(columns), 0))

    def raw(self, columns: Columns) -> FloatArray:
        """Return features for trees, (n, d); NaN for a missing number."""
        blocks = [number.raw(columns)[:, None] for number in self.numbers]
        blocks += [word.raw(columns) for word in self.words]
        return np.hstack(blocks) if blocks else np.zeros((_count(columns), 0))


def _number(name: str, columns: Columns) -> Number | None:
    column = columns[name]
    if column.dtype == object:
        return None
    there = column[~np.isnan(column)]
    if len(there) == 0 or there.min() == there.max():
        return None
    positive = bool((there > 0.0).all())
    values = np.log(there) if positive else there
    return Number(name, positive, float(values.mean()), float(values.std()), float(values.min()), float(values.max()))


def _word(name: str, columns: Columns) -> Word | None:
    texts = _texts(columns[name])
    values = sorted(set(texts.tolist()))
    if len(values) < 2:
        return None
    return Word(name, tuple(values), tuple(float((texts == value).mean()) for value in values))


def _texts(column: npt.NDArray[np.object_] | FloatArray) -> npt.NDArray[np.object_]:
    """Return a column as words; a number becomes `set`, a missing value the empty word."""
    if column.dtype != object:
        return np.where(np.isnan(column), "", "set").astype(object)
    texts = np.array(column, dtype=object)
    # Compare elementwise without a loop: there may be 100,000 values.
    texts[texts == np.array(None)] = ""
    return texts


def _count(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def select_cases(columns: Columns, chosen: npt.NDArray[np.intp]) -> Columns:
    """Return the cases at the indexes `chosen`, (m,)."""
    return {name: column[chosen] for name, column in columns.items()}
