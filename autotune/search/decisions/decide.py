"""Deciding: from what is believed of every setting in every cell to a table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from autotune.search.base import Rows
from autotune.search.decisions.belief import Belief


@dataclass(frozen=True)
class Choice:
    """What is chosen in a cell: a row of settings, and by how much its logarithm is lower than the default's.

    `low` and `high` are the ends of that difference's interval; where it holds 0, the default is chosen.
    """

    context: int
    point: float | None
    row: Rows
    gain: float
    low: float
    high: float
    is_default: bool


GUESS = 0.0
"""The confidence by which the best by its mean is chosen: what is worth to be compared with the default."""

# What is expected to gain less is not worth leaving the default.
_LEAST_GAIN = 0.01


def choices(belief: Belief, tried: Rows, confidence: float) -> list[Choice]:
    """Return what to use in every cell, of the settings that were tried anywhere: by contexts, then by points.

    Of those that are better than the default with this confidence, the one that is expected to be the best.
    """
    grid = belief.grid
    settings = grid.distinct(np.concatenate([grid.defaults, tried]))
    rows = grid.across(settings, len(settings) * len(grid.contexts) + 1)
    contexts = grid.context_of(rows)
    works = np.array([name not in belief.failed for name in grid.setting_keys(rows)])
    sure = float(ndtri(0.5 + confidence / 2.0))
    found: list[Choice] = []
    for place, default in enumerate(grid.defaults):
        here = rows[(contexts == place) & works]
        here = np.concatenate([default[None, :], here[(here != default).any(axis=1)]])
        found += [_chosen(belief, place, point, here, sure) for point in belief.points_of(place) or (None,)]
    return found


def _chosen(belief: Belief, context: int, point: float | None, rows: Rows, sure: float) -> Choice:
    """Return the choice among `rows`, (n, p), of which the default is the first."""
    posterior = belief.at(rows, np.full(len(rows), np.nan if point is None else point))
    places = np.arange(len(rows))
    gains, deviations = posterior.differences(np.zeros(len(rows), dtype=np.intp), places)
    surely: Sequence[int] = np.flatnonzero((gains - sure * deviations > 0.0) & (gains > _LEAST_GAIN)).tolist()
    best = max(surely, key=lambda place: float(gains[place]), default=0)
    away = sure * float(deviations[best])
    gain = float(gains[best])
    return Choice(context, point, rows[best], gain, gain - away, gain + away, is_default=best == 0)
