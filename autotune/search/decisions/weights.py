"""The weights of the cells of a decision table: how often a program uses each, and how long that takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from autotune.search.decisions.cell_model import CellModel
from autotune.search.decisions.grid import Grid, number
from autotune.statistics.gaussian_process import Array
from autotune.studyfile import COUNT
from spaces import Value

_Row = Mapping[str, Value]
_Key = tuple[float | str, ...]


@dataclass(frozen=True)
class Usage:
    """How often a program uses each cell.

    A use at a size between the points of the table counts for the nearest point by ratio; one beyond all points is in
    no cell.

    Attributes:
        rows: Rows with the contexts of the table, a point, and a count.
        points: The name of the key with the point, if there are points.
    """

    rows: tuple[_Row, ...]
    points: str | None = None

    def counts(
        self, contexts: Sequence[_Row], points: Sequence[Sequence[float]], ends: Sequence[Sequence[float]] | None = None
    ) -> tuple[dict[tuple[int, int], float], float]:
        """Return the counts by context and position among its points, and the share of uses that are in no cell.

        Args:
            contexts: The contexts of the table.
            points: The points of each context.
            ends: All points of each context, if `points` are only a part of them.
        """
        places = {_key(context, contexts[0]): place for place, context in enumerate(contexts)}
        found: dict[tuple[int, int], float] = {}
        outside = whole = 0.0
        for row in self.rows:
            count, context = float(row[COUNT]), places.get(_key(row, contexts[0]))
            whole += count
            column = None if context is None else self._column(row, points[context], (ends or points)[context])
            if context is None or column is None:
                outside += count
            else:
                found[context, column] = found.get((context, column), 0.0) + count
        return found, outside / whole if whole else 0.0

    def contexts_used(self, grid: Grid) -> NDArray[np.bool_]:
        """Return whether each context of a grid is used; all are if the rows use none of them."""
        used = {_key(row, grid.contexts[0]) for row in self.rows if row[COUNT]}
        found = np.array([_key(context, context) in used for context in grid.contexts])
        return found if found.any() else np.ones(len(grid.contexts), dtype=bool)

    def of_cells(self, cell_model: CellModel, points: Sequence[float]) -> Array:
        """Return the weights of the cells at some points, (c, k): equal without usage, else the time spent in them."""
        grid, columns = cell_model.grid, list(points)
        own = [cell_model.points_of(context) or columns for context in range(len(grid.contexts))]
        near = [_standing_for(known, columns) for known in own]
        there = np.array([[point in known for point in columns] for known in near], dtype=float)
        if not self.rows:
            return there
        counts, _ = self.counts(grid.contexts, near, own)
        weights = np.zeros_like(there)
        for (context, column), count in counts.items():
            weights[context, columns.index(near[context][column])] = count
        rows = np.repeat(grid.defaults, len(columns), axis=0)
        means = cell_model.at(rows, np.tile(columns, len(grid.defaults))).mean.reshape(weights.shape)
        weights *= there * np.exp(means - means.max())
        return weights / weights.max() if weights.any() else there

    def _column(self, row: _Row, points: Sequence[float], ends: Sequence[float]) -> int | None:
        if self.points is None or len(ends) < 2:
            return 0
        size = number(row[self.points])
        if size is None or not min(ends) <= size <= max(ends):
            return None
        return min(range(len(points)), key=lambda place: abs(_doublings(points[place]) - _doublings(size)))


def _standing_for(own: Sequence[float], points: Sequence[float]) -> list[float]:
    """Return the points that represent a context's own: those that it has, or else the nearest ones."""
    if np.isnan(points).any():
        return list(points)
    if has := [point for point in points if point in own]:
        return has
    nearest = {min(points, key=lambda point: abs(_doublings(point) - _doublings(size))) for size in own}
    return sorted(nearest)


def _doublings(size: float) -> float:
    return log2(max(size, 0.5))


def _key(row: _Row, context: _Row) -> _Key:
    """Return a row's values for the names in a context, in a form in which 2 and 2.0 are equal."""
    values = (row[name] for name in context)
    return tuple(str(value) if (known := number(value)) is None else known for value in values)
