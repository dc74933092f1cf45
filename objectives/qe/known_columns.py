"""Columns of cases, of which some may be missing or have gaps, as numbers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


class KnownColumns:
    """Parameters and facts of cases, (n,) each, by name; a default, or NaN, stands for what is not known."""

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        self._columns = columns
        self._count = len(next(iter(columns.values()))) if columns else 0

    def __call__(self, name: str, default: float | Column = np.nan) -> Column:
        """Return a column of numbers."""
        column = self._columns.get(name)
        usual = np.broadcast_to(np.asarray(default, dtype=float), (self._count,))
        if column is None or column.dtype == object:
            return usual.copy()
        return np.where(np.isnan(column), usual, column)

    def words(self, name: str) -> list[str | None]:
        """Return a column of words, None where one is not known."""
        column = self._columns.get(name)
        if column is None or column.dtype != object:
            return [None] * self._count
        return [value if isinstance(value, str) else None for value in column]
