"""Features: columns of values as numbers for a model, learnt from the cases that the model is fitted on.

Numbers that are all positive count by logarithm (a doubling is a step, a power law is a straight line), others as they
are; each word is a column; a column that may lack values has another beside it that says so.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spaces.expressions.quantities import Columns

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Number:
    """A column of numbers: its `mean` and `spread` in the cases learnt from, by logarithm if `positive`."""

    name: str
    positive: bool
    mean: float
    spread: float
    low: float
    high: float

    def raw(self, columns: Columns) -> FloatArray:
        """Return the column, (n,), NaN where there is no value (by logarithm: or no positive one)."""
        column = columns.get(self.name)
        if column is None or column.dtype == object:
            return np.full(_count(columns), np.nan)
        if not self.positive:
            return column
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(column > 0.0, np.log(column), np.nan)


@dataclass(frozen=True)
class Word:
    """A column of words: those that occur, and in which share of the cases; "" stands for no value."""

    name: str
    words: tuple[str, ...]
    shares: tuple[float, ...]

    def raw(self, columns: Columns) -> FloatArray:
        """Return a column for each word, (n, w), 1 where it is the value; an unknown word is none of them."""
        column = columns.get(self.name, np.full(_count(columns), None, dtype=object))
        texts = _texts(column)
        return np.column_stack([texts == word for word in self.words]).astype(float)


@dataclass(frozen=True)
class Features:
    """The columns that vary among the cases learnt from, as numbers and words."""

    numbers: tuple[Number, ...]
    words: tuple[Word, ...]

    @classmethod
    def learn(cls, columns: Columns) -> "Features":
        """Return the features of `columns`, (n,) each; a column that never changes is none."""
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
        """Return features for trees, (n, d): NaN where a number has no value."""
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
    """Return a column as words; numbers become `set`, or empty where there is no value."""
    if column.dtype != object:
        return np.where(np.isnan(column), "", "set").astype(object)
    texts = np.array(column, dtype=object)
    # Elementwise, without a loop: there may be 100,000.
    texts[texts == np.array(None)] = ""
    return texts


def _count(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def select_cases(columns: Columns, chosen: npt.NDArray[np.intp]) -> Columns:
    """Return the cases at the places `chosen`, (m,)."""
    return {name: column[chosen] for name, column in columns.items()}
