"""The sampler of studies that look for a decision table.

The default comes first in contexts that are far from each other, then a few trials that spread over contexts and
settings. After that each run is the one that is expected to gain most for the table, the geometric mean over
its cells: the knowledge gradient (Frazier, Powell & Dayanik, "The knowledge-gradient policy for correlated normal
beliefs", INFORMS Journal on Computing 2009) of one setting in one context, summed over all cells that the run informs
through the model, its own points and neighbours in size and ranks. Others' answers to the same question are static:
decision trees fitted to exhaustive tables (Pjesivac-Grbovic, Bosilca, Fagg, Angskun & Dongarra, "MPI collective
algorithm selection and quadtree encoding", Parallel Computing 2007), or active learning until the variance over the
points is small, whether a decision hangs on it or not (Wilkins, Guo, Thakur, Dinda & Hardavellas, "ACCLAiM: Advancing
the practicality of MPI collective communication autotuning using machine learning", CLUSTER 2022).
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection
from scipy.special import ndtr

from autotune.search import initial_design
from autotune.search.base import PASSED_OVER, History, Proposer, Rows, fresh, keys, unseen
from autotune.search.decisions.belief import Belief, Kernels, belief_of
from autotune.search.decisions.grid import Grid
from autotune.search.decisions.weights import Usage
from autotune.statistics.gaussian_process import Array, Posterior
from spaces import Space

# The default runs in at most so many contexts before anything else does.
_DEFAULTS = 16
_DESIGNED = 300
# Settings in contexts at points that are predicted for a proposal, and how many of the best are looked at closely.
_PREDICTED = 2_500
_POINTS = 6
_CLOSELY = 30


class DecisionSampler(Proposer):
    """Proposes settings in contexts, `over` whose values a table is wanted; by `usage`, where a program spends time."""

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
    def blind(self) -> int:
        """How many trials after the default do not depend on measurements."""
        return len(self._starts) - 1 + self._startup

    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return candidates that no trial has, the most promising first."""
        seen = history.rows
        first = fresh(self.grid.defaults[self._starts], seen)
        if len(first):
            return first
        if len(seen) > self.blind:
            promising = self._promising(history, rng)
            if promising is not None and len(promising):
                return promising
        return self._designed(seen, rng)

    @cached_property
    def _wanted(self) -> NDArray[np.bool_]:
        """Whether the program uses a context, (c,)."""
        return self._usage.wanted(self.grid)

    @cached_property
    def _starts(self) -> list[int]:
        """The contexts in which the default runs first: far from each other, the study's own at first."""
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

    def _designed(self, seen: Rows, rng: np.random.Generator) -> Rows:
        settings = self.grid.settings(rng, seen)
        rows = fresh(self.grid.across(settings, used=self._wanted), seen)
        if not len(rows):
            # The first settings have run everywhere; there may be others.
            rows = unseen(self.grid.across(settings, len(settings) * len(self._wanted) + 1, self._wanted), seen)
        rows = rng.permutation(rows)[:_DESIGNED]
        order = initial_design.ranked(self.space.traits_of(rows), self.space.traits_of(seen))
        chosen: Rows = rows[order[:PASSED_OVER]]
        return chosen

    def _promising(self, history: History, rng: np.random.Generator) -> Rows | None:
        belief = self.belief(history)
        if belief is None:
            return None
        pending = np.array([one.pending for one in history.observations])
        if pending.any():
            belief = belief.knowing(history.rows[pending])
        points = belief.some_points(_POINTS)
        weights = self._usage.of_cells(belief, points)
        settings = self.grid.settings(rng, _best_first(belief, history.rows, points, weights))
        rows = _working(belief, self.grid.across(settings, _PREDICTED // len(points), self._wanted))
        if not len(rows):
            return None
        gains = _Gains(belief, rows, points, weights)
        known = set(keys(history.rows))
        open_rows = np.flatnonzero([key not in known for key in keys(rows)])
        best: Rows = rows[gains.ranked(open_rows)[:PASSED_OVER]]
        return best

    def belief(self, history: History) -> Belief | None:
        """Return what the trials say of the cells; None before they say enough."""
        sign = -1.0 if history.direction == StudyDirection.MAXIMIZE else 1.0
        return belief_of(self.grid, history.rows, history.observations, sign, self._kernels)


def _working(belief: Belief, rows: Rows) -> Rows:
    """Return those of rows whose setting has not always failed."""
    kept: Rows = rows[[name not in belief.failed for name in belief.grid.setting_keys(rows)]]
    return kept


def _best_first(belief: Belief, tried: Rows, points: Sequence[float], weights: Array) -> Rows:
    """Return the tried rows, those first that are the furthest below the default at some point of their context.

    Cells without weight do not count.
    """
    tried = _working(belief, tried)
    contexts = belief.grid.context_of(tried)
    tried, contexts = tried[contexts >= 0], contexts[contexts >= 0]
    both = np.concatenate([tried, belief.grid.defaults[contexts]])
    means = belief.at(np.repeat(both, len(points), axis=0), np.tile(points, len(both))).mean
    own, default = means.reshape(2, len(tried), len(points))
    behind = np.where(weights[contexts] > 0.0, own - default, np.inf).min(axis=1)
    ordered: Rows = tried[np.argsort(behind, kind="stable")]
    return ordered


class _Gains:
    """What a run of each of `rows`, (n, p), is expected to gain; arrays by row and point are (n, k).

    `weights` say how much each cell matters, by context and point.
    """

    def __init__(self, belief: Belief, rows: Rows, points: Sequence[float], weights: Array) -> None:
        self._count = len(points)
        self._posterior: Posterior = belief.at(np.repeat(rows, self._count, axis=0), np.tile(points, len(rows)))
        self._noise = belief.model.noise
        contexts = belief.grid.context_of(rows)
        self._weights = weights[contexts]
        shape = (len(rows), self._count)
        self._mean = self._posterior.mean.reshape(shape)
        self._variance = self._posterior.deviation.reshape(shape) ** 2
        self._rival = self._rivals(contexts)
        names = np.array(belief.grid.setting_keys(rows), dtype=object)
        self._alike: dict[bytes, NDArray[np.intp]] = {name: np.flatnonzero(names == name) for name in set(names)}
        self._names = names

    def _rivals(self, contexts: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the best other row of the same context, (n, k); the row itself where it is alone."""
        rivals = np.repeat(np.arange(len(contexts))[:, None], self._count, axis=1)
        for context in np.unique(contexts):
            rows = np.flatnonzero(contexts == context)
            if len(rows) < 2:
                continue
            order = np.argsort(self._mean[rows], axis=0, kind="stable")
            first, second = rows[order[0]], rows[order[1]]
            rivals[rows] = np.where(rows[:, None] == first[None, :], second[None, :], first[None, :])
        return rivals

    def ranked(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the places with the greatest gains first."""
        columns = np.arange(self._count)
        behind = self._mean[places] - self._mean[self._rival[places], columns]
        change = self._variance[places] / np.sqrt(self._variance[places] + self._noise)
        rough = (self._weights[places] * _gain(behind, change)).sum(axis=1)
        closely = places[np.argsort(-rough, kind="stable")[:_CLOSELY]]
        exact = np.array([self._whole(int(place)) for place in closely])
        return closely[np.argsort(-exact, kind="stable")]

    def _whole(self, place: int) -> float:
        """Return the gain of one run over all cells in which its setting competes."""
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
    """Return how much lower the least mean is expected to become when a difference `behind` changes so much."""
    change = np.maximum(change, 1e-12)
    z = -np.abs(behind) / change
    gain: Array = change * (np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) + z * ndtr(z))
    return gain
