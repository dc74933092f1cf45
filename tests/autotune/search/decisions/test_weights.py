"""Weights of cells: a cell counts by how often a program uses it, and by the time that this takes."""

import numpy as np
from optuna.study import StudyDirection

from autotune.search.base import History
from autotune.search.decisions.cell_model import Kernels, fit_cell_model
from autotune.search.decisions.grid import Grid
from autotune.search.decisions.sampler import DecisionSampler
from autotune.search.decisions.weights import Usage
from autotune.storage.observation import Observation
from spaces import Choice, Integer, Space

SIZES = (8.0, 512.0, 32768.0)
SPACE = Space(
    [
        Choice("op", ("sum", "copy", "barrier"), default="sum"),
        Integer("ranks", (2, 4), default=2),
        Choice("way", ("own", "tree", "ring"), default="own"),
    ],
    [],
)
GRID = Grid(SPACE, ("op", "ranks"))


def row(op, size, count, ranks=2):
    return {"op": op, "ranks": ranks, "bytes": size, "count": count}


def measured(op):
    return tuple((size, 1.0 + size) for size in ((0.0,) if op == "barrier" else SIZES))


def test_uses_are_counted_at_the_nearest_point_and_what_is_in_no_cell_is_told():
    usage = Usage((row("sum", 8, 3), row("sum", 600, 2), row("sum", 4, 1), row("sum", 8, 4, ranks=3.0)), "bytes")
    counts, outside = usage.counts([{"op": "sum", "ranks": 2}, {"op": "sum", "ranks": 4}], [SIZES, SIZES])
    assert counts == {(0, 0): 3.0, (0, 1): 2.0}
    assert outside == 0.5
    counts, outside = Usage((row("barrier", 0, 7),), "bytes").counts([{"op": "barrier", "ranks": 2}], [(0.0,)])
    assert (counts, outside) == ({(0, 0): 7.0}, 0.0)


def test_weights_are_times_and_cells_that_are_not_there_have_none():
    rows = GRID.defaults
    seen = [Observation(1.0, points=measured(one["op"])) for one in SPACE.decode(rows)]
    cell_model = fit_cell_model(GRID, rows, seen, 1.0, Kernels(0))
    points = (0.0, *SIZES)
    barrier, copy = GRID.contexts.index({"op": "barrier", "ranks": 2}), GRID.contexts.index({"op": "copy", "ranks": 4})
    even = Usage(()).of_cells(cell_model, points)
    assert even[barrier].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert even[copy].tolist() == [0.0, 1.0, 1.0, 1.0]
    weights = Usage((row("copy", 8, 1, 4), row("copy", 32768, 1, 4)), "bytes").of_cells(cell_model, points)
    assert weights[barrier].tolist() == [0.0] * 4
    assert weights[copy, 3] == 1.0
    assert 0.0 < weights[copy, 1] < 0.01


def test_a_context_whose_points_are_others_than_those_looked_at_counts_at_the_nearest():
    rows = GRID.defaults
    sizes = {"sum": SIZES, "copy": (8.0, 400.0, 1024.0), "barrier": (200.0,)}
    seen = [
        Observation(1.0, points=tuple((size, 1.0 + size) for size in sizes[one["op"]])) for one in SPACE.decode(rows)
    ]
    cell_model = fit_cell_model(GRID, rows, seen, 1.0, Kernels(0))
    barrier, copy = GRID.contexts.index({"op": "barrier", "ranks": 2}), GRID.contexts.index({"op": "copy", "ranks": 4})
    assert Usage(()).of_cells(cell_model, SIZES)[barrier].tolist() == [0.0, 1.0, 0.0]
    assert Usage((row("barrier", 0, 7),), "bytes").of_cells(cell_model, SIZES)[barrier].tolist() == [0.0, 1.0, 0.0]
    # For 1024, 32768 is nearer than 8 by ratio, though copies of that size were not measured.
    weights = Usage((row("copy", 1024, 1, 4), row("sum", 8, 1)), "bytes").of_cells(cell_model, (8.0, 32768.0))
    assert weights[copy, 0] > 0.5
    assert weights[copy, 1] == 0.0


def test_runs_are_spent_where_the_program_spends_its_time():
    sampler = DecisionSampler(SPACE, ("op", "ranks"), seed=1, usage=Usage((row("copy", 512, 9, 4),), "bytes"))
    rows, seen, proposed = SPACE.indices([]).reshape(0, 3), [], []
    for _ in range(4):
        configuration = sampler.propose(History(rows, seen, StudyDirection.MINIMIZE))
        proposed.append(configuration)
        rows = np.concatenate([rows, SPACE.indices([configuration])])
        seen.append(Observation(1.0, points=measured(configuration["op"])))
    assert proposed[0] == SPACE.default()
    assert {(one["op"], one["ranks"]) for one in proposed[1:]} == {("copy", 4)}
    assert {one["way"] for one in proposed[1:]} == {"own", "tree", "ring"}
