"""The model of every setting in every cell of a decision table, fitted to the runs so far."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from autotune.search.base import Rows
from autotune.search.decisions.grid import Grid, point_traits
from autotune.search.decisions.model import Known, TableModel, fit_table_kernel
from autotune.statistics.gaussian_process import Array, Kernel, Posterior
from autotune.storage.observation import Observation

# The most values for the process; of runs with many points it gets some of each.
_MOST_VALUES = 600
_LEAST_VALUES = 4


@dataclass(frozen=True)
class CellModel:
    """A model of the cells of a grid.

    Attributes:
        grid: The cells and settings.
        model: The process.
        points: The measured points in ascending order; empty for runs without points.
    """

    grid: Grid
    model: TableModel
    points: tuple[float, ...]
    failed: frozenset[bytes] = frozenset()
    """The keys of the settings that have always failed."""
    own_points: tuple[tuple[float, ...], ...] = ()
    """The points of each context; an operation without a size has a single one."""

    def points_of(self, context: int) -> tuple[float, ...]:
        """Return the points of a context, given by its position in the grid; empty without points."""
        return self.own_points[context] if self.own_points else self.points

    def at(self, rows: Rows, points: Array) -> Posterior:
        """Return the posterior of `rows`, (n, p), at `points`, (n,), which are ignored for runs without points."""
        return self.model.at(*self._traits_of(rows, points))

    def _traits_of(self, rows: Rows, points: Array) -> tuple[Array, Array]:
        return traits_of_cells(self.grid, rows, points, self.points)

    def with_running(self, rows: Rows) -> "CellModel":
        """Return the model with the running `rows` counted as one run each at the model's means."""
        points = np.array(self.some_points(3))
        where = np.repeat(rows, len(points), axis=0), np.tile(points, len(rows))
        return replace(self, model=self.model.believing(*self._traits_of(*where)))

    def some_points(self, most: int) -> tuple[float, ...]:
        """Return at most `most` points, evenly from the least to the greatest; a NaN for runs without points."""
        if not self.points:
            return (float("nan"),)
        places = np.unique(np.linspace(0, len(self.points) - 1, min(most, len(self.points))).round().astype(int))
        return tuple(self.points[place] for place in places)


@dataclass
class Kernels:
    """Kernels by the number of trials that they are fitted to; a new one is fitted after about a tenth more trials.

    A kernel depends only on its trials, not on earlier calls.
    """

    seed: int
    _learnt: dict[int, Kernel] = field(default_factory=dict)

    def of(self, known: Known, trials: NDArray[np.intp], count: int) -> Kernel:
        """Return the kernel for the values of `count` trials; `trials`, (n,), has the trial of each value."""
        step = _step(count)
        if step not in self._learnt:
            first = np.flatnonzero(trials < step)
            enough = known.some(first) if len(first) >= _LEAST_VALUES else known
            self._learnt[step] = fit_table_kernel(enough, np.random.default_rng([self.seed, step]))
        return self._learnt[step]


def fit_cell_model(
    grid: Grid,
    rows: Rows,
    observations: Sequence[Observation],
    sign: float,
    kernels: "Kernels",
) -> CellModel | None:
    """Return the model fitted to the observations of `rows`, (n, p); None while they are too few.

    `sign` is -1 if greater values are better.
    """
    measured = [
        (place, point, value, one.runs) for place, one in enumerate(observations) for point, value in _values(one)
    ]
    if len(measured) < _LEAST_VALUES or not all(value > 0.0 for _, _, value, _ in measured):
        return None
    points = tuple(sorted({point for _, point, _, _ in measured if point is not None}))
    stride = -(-len(measured) // _MOST_VALUES)
    # Each trial starts with another of its points, so that every point has values from some trials.
    kept = [each for number, each in enumerate(measured) if (number + each[0]) % stride == 0]
    chosen = rows[[place for place, _, _, _ in kept]]
    at = np.array([np.nan if point is None else point for _, point, _, _ in kept])
    y = sign * np.log([value for _, _, value, _ in kept])
    known = Known(*traits_of_cells(grid, chosen, at, points), y, np.array([float(runs) for *_, runs in kept]))
    kernel = kernels.of(known, np.array([place for place, *_ in kept]), len(observations))
    measured_at = [(place, point) for place, point, _, _ in measured]
    return CellModel(
        grid,
        TableModel.of(kernel, known),
        points,
        _failed_rows(grid, rows, observations),
        _own_points(grid, rows, measured_at),
    )


def traits_of_cells(grid: Grid, rows: Rows, points: Array, known: Sequence[float]) -> tuple[Array, Array]:
    """Return the traits of the contexts, (n, a), and of contexts and settings, (n, b), both with any points."""
    contexts, traits = grid.context_traits(rows), grid.space.traits_of(rows)
    if not known:
        return contexts, traits
    ends = point_traits([*known, *points])
    at = (ends[len(known) :] - ends[: len(known)].min()) / (float(np.ptp(ends[: len(known)])) or 1.0)
    return np.column_stack([contexts, at, at * at]), np.column_stack([traits, at])


def _own_points(grid: Grid, rows: Rows, measured: Sequence[tuple[int, float | None]]) -> tuple[tuple[float, ...], ...]:
    """Return the measured points of each context; a context without runs gets those of the nearest one with runs."""
    contexts = grid.context_of(rows)
    found: dict[int, set[float]] = {}
    for place, point in measured:
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


def _failed_rows(grid: Grid, rows: Rows, observations: Sequence[Observation]) -> frozenset[bytes]:
    names = grid.setting_keys(rows)
    works: NDArray[np.bool_] = np.array([one.pending or one.value is not None for one in observations], dtype=bool)
    return frozenset(np.array(names, dtype=object)[~works]) - frozenset(np.array(names, dtype=object)[works])


def _step(count: int) -> int:
    """Return the greatest number of a sequence that grows by a tenth, up to `count`."""
    step = 1
    while (more := max(step + 1, int(step * 1.1))) <= count:
        step = more
    return step
