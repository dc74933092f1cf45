"""Columns of cases as numbers or words, with usual values where something is unknown."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CaseColumns:
    """Columns of parameters and facts by name, (n,) each: numbers with NaN for no value, or words with None."""

    columns: Mapping[str, npt.NDArray[Any]]

    @property
    def count(self) -> int:
        """The number of cases."""
        return len(next(iter(self.columns.values()), ()))

    def number(self, name: str, usual: float | Column = np.nan) -> Column:
        """Return a column of numbers; `usual`, a number or (n,), replaces missing ones."""
        column = self.columns.get(name)
        if column is None or column.dtype == object:
            return np.full(self.count, usual)
        return np.where(np.isnan(column), usual, column)

    def first(self, *names: str, usual: float) -> Column:
        """Return a number for each case: that of the first column of `names` with a value, or `usual` without any."""
        column = np.full(self.count, usual)
        for name in reversed(names):
            column = np.where(np.isnan(own := self.number(name)), column, own)
        return column

    def words(self, name: str) -> list[str]:
        """Return a column as words: "" for no value, whole numbers without decimals."""
        column = self.columns.get(name)
        if column is None:
            return [""] * self.count
        if column.dtype == object:
            return ["" if word is None else str(word) for word in column]
        return ["" if np.isnan(number) else f"{number:g}" for number in column]
