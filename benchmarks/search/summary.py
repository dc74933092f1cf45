"""Summaries of cells: a row for each space, method and budget. Rows of random search are computed exactly."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchmarks.search.cell import Cell
from benchmarks.search.problem import Problem
from tests.support.search_scores import Baseline, RandomSearch, evaluations_to

EXACT = "random (exact)"
WITHIN = (0.05, 0.01)
# The overhead at a budget is the mean over this number of proposals before it.
_PROPOSALS = 10


@dataclass(frozen=True)
class Selection:
    """The scope of a report; `versions` has the installed version of each method, and other versions are left out."""

    problems: Sequence[Problem]
    versions: Mapping[str, str]
    seeds: int
    budgets: Sequence[int]


@dataclass(frozen=True)
class Row:
    """One method on one space at one budget, over seeds. Gaps are relative: best / optimum - 1.

    `to_5`, `to_1` are mean evaluations to within 5 % and 1 %, `budget` + 1 where that was not reached; `reached_5`,
    `reached_1` the shares that got there; `score` the field's; `overhead_ms` the median over seeds.
    """

    space: str
    method: str
    version: str
    budget: int
    seeds: int
    gap: float
    gap_error: float
    gap_median: float
    to_5: float
    reached_5: float
    to_1: float
    reached_1: float
    score: float
    score_error: float
    overhead_ms: float


class Truth:
    """A problem with its baselines, computed once for a budget."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._baselines: dict[int, Baseline] = {}

    @cached_property
    def random(self) -> RandomSearch:
        return RandomSearch.over(self.problem.values, min(self.problem.size, 1_000))

    def baseline(self, budget: int) -> Baseline:
        if budget not in self._baselines:
            self._baselines[budget] = Baseline.of(self.problem.values, self.problem.costs_s, budget)
        return self._baselines[budget]


def rows(cells: Iterable[Cell], selection: Selection) -> list[Row]:
    """Return the rows of every space, method and budget that has a cell."""
    grouped: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if selection.versions.get(cell.method) == cell.version and cell.seed < selection.seeds and not cell.broken:
            grouped[cell.space, cell.method].append(cell)
    found: list[Row] = []
    for problem in selection.problems:
        truth = Truth(problem)
        for budget in selection.budgets:
            found.append(_exact(truth, budget))
            for method in selection.versions:
                usable = [cell for cell in grouped[problem.name, method] if _covers(cell, budget) and cell.places]
                if usable:
                    found.append(_row(truth, usable, budget))
    return found


def _covers(cell: Cell, budget: int) -> bool:
    return cell.budget >= budget or cell.ended == "space"


def _row(truth: Truth, cells: Sequence[Cell], budget: int) -> Row:
    optimum = truth.problem.optimum
    best = [cell.best_so_far(truth.problem.worst)[:budget] for cell in cells]
    gaps = np.array([found[-1] / optimum - 1.0 for found in best])
    baseline = truth.baseline(budget)
    scores = np.array([baseline.score(b, c.costs_s[: len(b)]) for b, c in zip(best, cells, strict=True)])
    to = [np.array([evaluations_to(found, optimum, within, budget) for found in best]) for within in WITHIN]
    overheads = [np.mean(cell.overhead_s[max(budget - _PROPOSALS, 0) : budget] or np.nan) for cell in cells]
    return Row(
        truth.problem.name,
        cells[0].method,
        cells[0].version,
        budget,
        len(cells),
        float(gaps.mean()),
        _error(gaps),
        float(np.median(gaps)),
        float(to[0].mean()),
        float((to[0] <= budget).mean()),
        float(to[1].mean()),
        float((to[1] <= budget).mean()),
        float(scores.mean()),
        _error(scores),
        1e3 * float(np.median(overheads)),
    )


def _error(values: np.ndarray) -> float:
    """Return the standard error of the mean; NaN for one value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _exact(truth: Truth, budget: int) -> Row:
    """Return random search's row: no error, and a score of 0 by definition."""
    last = min(budget, truth.problem.size)
    random = RandomSearch(truth.random.ordered, truth.random.missed[: last + 1])
    optimum = truth.problem.optimum
    (to_5, reached_5), (to_1, reached_1) = (random.evaluations_to(within) for within in WITHIN)
    gap = float(random.expected_best()[-1]) / optimum - 1.0
    median = float(random.quantile(0.5)[-1]) / optimum - 1.0
    return Row(
        truth.problem.name, EXACT, "", budget, 0, gap, 0.0, median, to_5, reached_5, to_1, reached_1, 0.0, 0.0, 0.0
    )


def by_method(found: Iterable[Row], budget: int) -> dict[str, dict[str, Row]]:
    """Return the rows of a budget by method and space."""
    table: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in found:
        if row.budget == budget:
            table[row.method][row.space] = row
    return dict(table)


def complete(table: Mapping[str, Mapping[str, Row]], spaces: Iterable[str]) -> Iterator[str]:
    """Yield the methods that have a row for every space: only their means may be compared."""
    wanted = set(spaces)
    for method, cells in table.items():
        if wanted <= cells.keys():
            yield method
