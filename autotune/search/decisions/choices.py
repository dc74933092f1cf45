"""Choose a setting for every cell of a decision table, from the model of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from autotune.search.base import Rows
from autotune.search.decisions.cell_model import CellModel


@dataclass(frozen=True)
class Choice:
    """The setting chosen for a cell.

    Attributes:
        context: The position of the context in the grid.
        point: The point, if runs have points.
        row: The setting in this context, value indexes.
        gain: By how much the logarithm of its cost is lower than the default's.
        low: The lower end of the interval of `gain`.
        high: The upper end of the interval of `gain`.
        is_default: Whether it is the default, which is chosen unless another setting is surely better.
    """

    context: int
    point: float | None
    row: Rows
    gain: float
    low: float
    high: float
    is_default: bool


GUESS = 0.0
"""The confidence with which the best mean is chosen, for settings to compare with the default."""

# A smaller expected gain is not worth a departure from the default.
_LEAST_GAIN = 0.01


def choose_settings(cell_model: CellModel, tried: Rows, confidence: float) -> list[Choice]:
    """Return the setting to use in every cell, by context and then by point.

    It is the one with the best mean among those that are better than the default with this confidence. All settings
    that were tried in any cell compete.
    """
    grid = cell_model.grid
    settings = grid.distinct(np.concatenate([grid.defaults, tried]))
    rows = grid.across(settings, len(settings) * len(grid.contexts) + 1)
    contexts = grid.context_of(rows)
    works = np.array([name not in cell_model.failed for name in grid.setting_keys(rows)])
    sure = float(scipy.special.ndtri(0.5 + confidence / 2.0))
    found: list[Choice] = []
    for place, default in enumerate(grid.defaults):
        here = rows[(contexts == place) & works]
        here = np.concatenate([default[None, :], here[(here != default).any(axis=1)]])
        found += [_choose(cell_model, place, point, here, sure) for point in cell_model.points_of(place) or (None,)]
    return found


def _choose(cell_model: CellModel, context: int, point: float | None, rows: Rows, sure: float) -> Choice:
    """Return the choice among `rows`, (n, p), whose first row is the default."""
    posterior = cell_model.at(rows, np.full(len(rows), np.nan if point is None else point))
    places = np.arange(len(rows))
    gains, deviations = posterior.differences(np.zeros(len(rows), dtype=np.intp), places)
    surely: Sequence[int] = np.flatnonzero((gains - sure * deviations > 0.0) & (gains > _LEAST_GAIN)).tolist()
    best = max(surely, key=lambda place: float(gains[place]), default=0)
    away = sure * float(deviations[best])
    gain = float(gains[best])
    return Choice(context, point, rows[best], gain, gain - away, gain + away, is_default=best == 0)
