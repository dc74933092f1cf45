"""The sampler of studies that look for a decision table.

The default runs first, in contexts that are far from each other, then a few trials that spread over contexts and
settings. After that each run is the one with the greatest expected gain for the table, measured by the geometric mean
over its cells. That is the knowledge gradient (Frazier, Powell & Dayanik, "The knowledge-gradient policy for correlated
normal beliefs", INFORMS Journal on Computing 2009) of a setting in a context, summed over all cells that the run
informs through the model: its own points, and neighbours in size and ranks. Earlier work is static: decision trees
fitted to exhaustive tables (Pjesivac-Grbovic, Bosilca, Fagg, Angskun & Dongarra, "MPI collective algorithm selection
and quadtree encoding", Parallel Computing 2007), or active learning until the variance over the points is small,
whether or not a decision depends on it (Wilkins, Guo, Thakur, Dinda & Hardavellas, "ACCLAiM: Advancing the practicality
of MPI collective communication autotuning using machine learning", CLUSTER 2022).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray
from optuna.study import StudyDirection

from autotune.search import initial_design
from autotune.search.base import PASSED_OVER, History, Proposer, Rows, fresh, keys, unseen
from autotune.search.decisions.cell_model import CellModel, Kernels, fit_cell_model
from autotune.search.decisions.grid import Grid
from autotune.search.decisions.weights import Usage
from autotune.statistics.gaussian_process import Array, Posterior
from spaces import Space

# The most contexts in which the default runs before any other setting.
_DEFAULTS = 16
_DESIGNED = 300
# For a proposal: the rows times points to predict, the most points, and how many of the best get the exact gain.
_PREDICTED = 2_500
_POINTS = 6
_CLOSELY = 30


class DecisionSampler(Proposer):
    """Proposes settings in contexts.

    Args:
        space: The space to search.
        over: The parameters that are the contexts of the table.
        seed: The seed of the random numbers.
        startup: The number of trials that spread over contexts and settings.
        usage: How often a program uses each cell.
    """

    def __init__(
        self,
        space: Space,
        over: Sequence[str],
        *,
        seed: int = 0,
        startup: int = 6,
        usage: Usage = Usage(()),  # noqa: B008  frozen
    ) -> None:
        super().__init__(space, seed=seed)
        self.grid = Grid(space, tuple(over))
        self._usage = usage
        self._startup = startup
        self._kernels = Kernels(seed)

    @property
    def startup_trials(self) -> int:
        """The number of trials after the default that do not depend on measurements."""
        return len(self._starts) - 1 + self._startup

    def rank(self, history: History, rng: np.random.Generator) -> Rows:
        """Return candidates that no trial has, the most promising first."""
        seen = history.rows
        first = fresh(self.grid.defaults[self._starts], seen)
        if len(first):
            return first
        if len(seen) > self.startup_trials:
            promising = self._promising(history, rng)
            if promising is not None and len(promising):
                return promising
        return self._design(seen, rng)

    @cached_property
    def _wanted(self) -> NDArray[np.bool_]:
        """Whether the program uses each context, (c,)."""
        return self._usage.contexts_used(self.grid)

    @cached_property
    def _starts(self) -> list[int]:
        """The contexts in which the default runs first: that of the study's default, then others far apart."""
        defaults = self.grid.defaults
        traits, away = self.grid.context_traits(defaults), np.where(self._wanted, np.inf, -np.inf)
        own = keys(self.space.indices([self.space.default()]))[0]
        chosen = [keys(defaults).index(own) if own in keys(defaults) else 0]
        for _ in range(min(int(self._wanted.sum()), _DEFAULTS)):
            away = np.minimum(away, ((traits - traits[chosen[-1]]) ** 2).sum(axis=1))
            away[chosen] = -np.inf
            if not np.isfinite(away.max()):
                break
            chosen.append(int(np.argmax(away)))
        return chosen[:_DEFAULTS]

    def _design(self, seen: Rows, rng: np.random.Generator) -> Rows:
        settings = self.grid.settings(rng, seen)
        rows = fresh(self.grid.across(settings, used=self._wanted), seen)
        if not len(rows):
            # The first settings have run in every context, so look at all settings.
            rows = unseen(self.grid.across(settings, len(settings) * len(self._wanted) + 1, self._wanted), seen)
        rows = rng.permutation(rows)[:_DESIGNED]
        order = initial_design.rank(self.space.traits_of(rows), self.space.traits_of(seen))
        chosen: Rows = rows[order[:PASSED_OVER]]
        return chosen

    def _promising(self, history: History, rng: np.random.Generator) -> Rows | None:
        cell_model = self.cell_model(history)
        if cell_model is None:
            return None
        pending = np.array([one.pending for one in history.observations])
        if pending.any():
            cell_model = cell_model.with_running(history.rows[pending])
        points = cell_model.some_points(_POINTS)
        weights = self._usage.of_cells(cell_model, points)
        settings = self.grid.settings(rng, _best_first(cell_model, history.rows, points, weights))
        rows = _working(cell_model, self.grid.across(settings, _PREDICTED // len(points), self._wanted))
        if not len(rows):
            return None
        gains = _Gains(cell_model, rows, points, weights)
        known = set(keys(history.rows))
        open_rows = np.flatnonzero([key not in known for key in keys(rows)])
        best: Rows = rows[gains.rank(open_rows)[:PASSED_OVER]]
        return best

    def cell_model(self, history: History) -> CellModel | None:
        """Return the model of the cells; None while there are too few values."""
        sign = -1.0 if history.direction == StudyDirection.MAXIMIZE else 1.0
        return fit_cell_model(self.grid, history.rows, history.observations, sign, self._kernels)


def _working(cell_model: CellModel, rows: Rows) -> Rows:
    """Return the rows whose setting has not always failed."""
    kept: Rows = rows[[name not in cell_model.failed for name in cell_model.grid.setting_keys(rows)]]
    return kept


def _best_first(cell_model: CellModel, tried: Rows, points: Sequence[float], weights: Array) -> Rows:
    """Return the tried rows, ordered by the greatest distance below the default at any point of their context.

    Cells without weight do not count.
    """
    tried = _working(cell_model, tried)
    contexts = cell_model.grid.context_of(tried)
    tried, contexts = tried[contexts >= 0], contexts[contexts >= 0]
    both = np.concatenate([tried, cell_model.grid.defaults[contexts]])
    means = cell_model.at(np.repeat(both, len(points), axis=0), np.tile(points, len(both))).mean
    own, default = means.reshape(2, len(tried), len(points))
    behind = np.where(weights[contexts] > 0.0, own - default, np.inf).min(axis=1)
    ordered: Rows = tried[np.argsort(behind, kind="stable")]
    return ordered


class _Gains:
    """The expected gain of a run of each of `rows`, (n, p); arrays by row and point are (n, k).

    `weights`, (c, k), are the weights of the cells, by context and point.
    """

    def __init__(self, cell_model: CellModel, rows: Rows, points: Sequence[float], weights: Array) -> None:
        self._count = len(points)
        self._posterior: Posterior = cell_model.at(np.repeat(rows, self._count, axis=0), np.tile(points, len(rows)))
        self._noise = cell_model.model.noise
        contexts = cell_model.grid.context_of(rows)
        self._weights = weights[contexts]
        shape = (len(rows), self._count)
        self._mean = self._posterior.mean.reshape(shape)
        self._variance = self._posterior.deviation.reshape(shape) ** 2
        self._rival = self._rivals(contexts)
        names = np.array(cell_model.grid.setting_keys(rows), dtype=object)
        self._alike: dict[bytes, NDArray[np.intp]] = {name: np.flatnonzero(names == name) for name in set(names)}
        self._names = names

    def _rivals(self, contexts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the best other row of the same context, (n, k); the row itself if it is the only one."""
        rivals = np.repeat(np.arange(len(contexts))[:, None], self._count, axis=1)
        for context in np.unique(contexts):
            rows = np.flatnonzero(contexts == context)
            if len(rows) < 2:
                continue
            order = np.argsort(self._mean[rows], axis=0, kind="stable")
            first, second = rows[order[0]], rows[order[1]]
            rivals[rows] = np.where(rows[:, None] == first[None, :], second[None, :], first[None, :])
        return rivals

    def rank(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the positions, those with the greatest gains first."""
        columns = np.arange(self._count)
        behind = self._mean[places] - self._mean[self._rival[places], columns]
        change = self._variance[places] / np.sqrt(self._variance[places] + self._noise)
        rough = (self._weights[places] * _gain(behind, change)).sum(axis=1)
        closely = places[np.argsort(-rough, kind="stable")[:_CLOSELY]]
        exact = np.array([self._whole(int(place)) for place in closely])
        return closely[np.argsort(-exact, kind="stable")]

    def _whole(self, place: int) -> float:
        """Return the gain of a run, summed over all cells in which its setting competes."""
        rows, total = self._alike[self._names[place]], 0.0
        for column in range(self._count):
            rivals = self._rival[rows, column]
            here = np.array([place * self._count + column])
            own = self._posterior.covariance(rows * self._count + column, here)[:, 0]
            others = self._posterior.covariance(rivals * self._count + column, here)[:, 0]
            change = np.abs(own - others) / np.sqrt(self._variance[place, column] + self._noise)
            behind = self._mean[rows, column] - self._mean[rivals, column]
            total += float((self._weights[rows, column] * _gain(behind, change)).sum())
        return total


def _gain(behind: Array, change: Array) -> Array:
    """Return the expected decrease of the least mean when a difference `behind` has the standard deviation `change`."""
    change = np.maximum(change, 1e-12)
    z = -np.abs(behind) / change
    gain: Array = change * (np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) + z * scipy.special.ndtr(z))
    return gain
