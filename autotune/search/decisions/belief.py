"""Belief: what the runs so far say of every setting in every cell of a decision table."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from autotune.search.base import Rows
from autotune.search.decisions.grid import Grid, point_traits
from autotune.search.decisions.model import Known, TableModel, learnt
from autotune.statistics.gaussian_process import Array, Kernel, Posterior
from autotune.storage.observation import Observation

# The process knows at most so many values: of runs with many points, some of each.
_MOST_VALUES = 600
_LEAST_VALUES = 4


@dataclass(frozen=True)
class Belief:
    """A model of a grid's cells; `points` are those that runs have measured, in order; none without points."""

    grid: Grid
    model: TableModel
    points: tuple[float, ...]
    failed: frozenset[bytes] = frozenset()
    """The settings that have always failed."""
    own_points: tuple[tuple[float, ...], ...] = ()
    """The points that each context has; an operation without a size has one."""

    def points_of(self, context: int) -> tuple[float, ...]:
        """Return the points of a context, by its place in the grid; none without points."""
        return self.own_points[context] if self.own_points else self.points

    def at(self, rows: Rows, points: Array) -> Posterior:
        """Return what is known of `rows`, (n, p), at `points`, (n,); those are ignored without points."""
        return self.model.at(*self._described(rows, points))

    def _described(self, rows: Rows, points: Array) -> tuple[Array, Array]:
        return described(self.grid, rows, points, self.points)

    def knowing(self, rows: Rows) -> "Belief":
        """Return the belief that takes its means for one run's values of `rows`, which are running."""
        points = np.array(self.some_points(3))
        where = np.repeat(rows, len(points), axis=0), np.tile(points, len(rows))
        return replace(self, model=self.model.believing(*self._described(*where)))

    def some_points(self, most: int) -> tuple[float, ...]:
        """Return at most so many points, evenly from the least to the greatest; NaN without points."""
        if not self.points:
            return (float("nan"),)
        places = np.unique(np.linspace(0, len(self.points) - 1, min(most, len(self.points))).round().astype(int))
        return tuple(self.points[place] for place in places)


@dataclass
class Kernels:
    """Kernels, by the number of trials that they were learnt from; a new one is learnt from about a tenth more.

    A kernel depends on its trials only, and not on earlier questions.
    """

    seed: int
    _learnt: dict[int, Kernel] = field(default_factory=dict)

    def of(self, known: Known, trials: NDArray[np.intp], count: int) -> Kernel:
        """Return the kernel for values of as many trials, `trials`, (n,), are those of the values."""
        step = _step(count)
        if step not in self._learnt:
            first = np.flatnonzero(trials < step)
            enough = known.some(first) if len(first) >= _LEAST_VALUES else known
            self._learnt[step] = learnt(enough, np.random.default_rng([self.seed, step]))
        return self._learnt[step]


def belief_of(
    grid: Grid,
    rows: Rows,
    observations: Sequence[Observation],
    sign: float,
    kernels: "Kernels",
) -> Belief | None:
    """Return what the observations of `rows`, (n, p), say; None before there are enough of them.

    `sign` is -1 where a greater value is better.
    """
    told = [(place, point, value, one.runs) for place, one in enumerate(observations) for point, value in _values(one)]
    if len(told) < _LEAST_VALUES or not all(value > 0.0 for _, _, value, _ in told):
        return None
    points = tuple(sorted({point for _, point, _, _ in told if point is not None}))
    stride = -(-len(told) // _MOST_VALUES)
    # Trials begin with another of their points each, so that each point is told by some.
    kept = [each for number, each in enumerate(told) if (number + each[0]) % stride == 0]
    chosen = rows[[place for place, _, _, _ in kept]]
    at = np.array([np.nan if point is None else point for _, point, _, _ in kept])
    y = sign * np.log([value for _, _, value, _ in kept])
    known = Known(*described(grid, chosen, at, points), y, np.array([float(runs) for *_, runs in kept]))
    kernel = kernels.of(known, np.array([place for place, *_ in kept]), len(observations))
    told_at = [(place, point) for place, point, _, _ in told]
    return Belief(
        grid, TableModel.of(kernel, known), points, _failed(grid, rows, observations), _own_points(grid, rows, told_at)
    )


def described(grid: Grid, rows: Rows, points: Array, known: Sequence[float]) -> tuple[Array, Array]:
    """Return the traits of the contexts, (n, a), and of contexts and settings, (n, b), with the points if there are."""
    contexts, traits = grid.context_traits(rows), grid.space.traits_of(rows)
    if not known:
        return contexts, traits
    ends = point_traits([*known, *points])
    at = (ends[len(known) :] - ends[: len(known)].min()) / (float(np.ptp(ends[: len(known)])) or 1.0)
    return np.column_stack([contexts, at, at * at]), np.column_stack([traits, at])


def _own_points(grid: Grid, rows: Rows, told: Sequence[tuple[int, float | None]]) -> tuple[tuple[float, ...], ...]:
    """Return the points that runs have measured in each context; where none has run, those of the nearest one."""
    contexts = grid.context_of(rows)
    found: dict[int, set[float]] = {}
    for place, point in told:
        found.setdefault(int(contexts[place]), set()).update(() if point is None else (point,))
    found.pop(-1, None)
    ran = sorted(found)
    if not ran:
        return ()
    traits = grid.context_traits(grid.defaults)
    nearest = (ran[int(np.argmin(((traits[ran] - own) ** 2).sum(axis=1)))] for own in traits)
    return tuple(tuple(sorted(found[context])) for context in nearest)


def _values(observation: Observation) -> Sequence[tuple[float | None, float]]:
    if observation.points:
        return observation.points
    return [(None, observation.value)] if observation.value is not None else []


def _failed(grid: Grid, rows: Rows, observations: Sequence[Observation]) -> frozenset[bytes]:
    names = grid.setting_keys(rows)
    works: NDArray[np.bool_] = np.array([one.pending or one.value is not None for one in observations], dtype=bool)
    return frozenset(np.array(names, dtype=object)[~works]) - frozenset(np.array(names, dtype=object)[works])


def _step(count: int) -> int:
    """Return the greatest number of a sequence that grows by a tenth, up to `count`."""
    step = 1
    while (more := max(step + 1, int(step * 1.1))) <= count:
        step = more
    return step
