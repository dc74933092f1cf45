"""Weights: how much each cell of a decision table matters, by how often a program uses it and how long that takes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from autotune.search.decisions.belief import Belief
from autotune.search.decisions.grid import Grid, number
from autotune.statistics.gaussian_process import Array
from autotune.studyfile import COUNT
from spaces import Value

_Row = Mapping[str, Value]
_Key = tuple[float | str, ...]


@dataclass(frozen=True)
class Usage:
    """How often a program uses each cell: `rows` with the contexts, the points under the name `points`, and a count.

    Contexts must be those of the table; a point counts for the nearest one by ratio, if it is not beyond all of them.
    """

    rows: tuple[_Row, ...]
    points: str | None = None

    def counts(
        self, contexts: Sequence[_Row], points: Sequence[Sequence[float]], ends: Sequence[Sequence[float]] | None = None
    ) -> tuple[dict[tuple[int, int], float], float]:
        """Return the counts by context and by place among its `points`, and the share of all that are in no cell.

        `ends` are all points of the contexts, where `points` are some.
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

    def wanted(self, grid: Grid) -> NDArray[np.bool_]:
        """Return which contexts of a grid are used at all; all of them if none is."""
        used = {_key(row, grid.contexts[0]) for row in self.rows if row[COUNT]}
        found = np.array([_key(context, context) in used for context in grid.contexts])
        return found if found.any() else np.ones(len(grid.contexts), dtype=bool)

    def of_cells(self, belief: Belief, points: Sequence[float]) -> Array:
        """Return the weights of a belief's cells at these points, (c, k): one each, or the time in them; 0 for none."""
        grid, columns = belief.grid, list(points)
        own = [belief.points_of(context) or columns for context in range(len(grid.contexts))]
        near = [_standing_for(known, columns) for known in own]
        there = np.array([[point in known for point in columns] for known in near], dtype=float)
        if not self.rows:
            return there
        counts, _ = self.counts(grid.contexts, near, own)
        weights = np.zeros_like(there)
        for (context, column), count in counts.items():
            weights[context, columns.index(near[context][column])] = count
        rows = np.repeat(grid.defaults, len(columns), axis=0)
        means = belief.at(rows, np.tile(columns, len(grid.defaults))).mean.reshape(weights.shape)
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
    """Return which of some points stand for a context's own: those that it has, or else the nearest ones."""
    if np.isnan(points).any():
        return list(points)
    if has := [point for point in points if point in own]:
        return has
    nearest = {min(points, key=lambda point: abs(_doublings(point) - _doublings(size))) for size in own}
    return sorted(nearest)


def _doublings(size: float) -> float:
    return log2(max(size, 0.5))


def _key(row: _Row, context: _Row) -> _Key:
    """Return a row's values of the names of a context, so that 2 and 2.0 are the same."""
    values = (row[name] for name in context)
    return tuple(str(value) if (known := number(value)) is None else known for value in values)
