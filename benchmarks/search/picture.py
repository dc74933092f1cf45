"""The plot: mean gap over evaluations, with a panel per space."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.search.cell import Cell
from benchmarks.search.problem import Problem
from benchmarks.search.report import labels
from benchmarks.search.summary import EXACT, Row, Selection, by_method, complete
from tests.support.search_scores import RandomSearch

_COLUMNS = 4
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink", "tab:olive")
# A gap of nothing has no logarithm.
_LEAST = 1e-3


def draw(cells: Iterable[Cell], rows: Sequence[Row], selection: Selection, path: Path) -> None:
    """Draw this project's sampler, exact random search, and the best few peers (by mean gap at 50 evaluations)."""
    from matplotlib.figure import Figure  # noqa: PLC0415  takes a second to import

    budget = 50 if 50 in selection.budgets else max(selection.budgets)
    chosen = _chosen(rows, selection, budget)
    grouped: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells:
        if selection.versions.get(cell.method) == cell.version and cell.seed < selection.seeds and cell.places:
            grouped[cell.space, cell.method].append(cell)
    lines = -(-len(selection.problems) // _COLUMNS)
    figure = Figure(figsize=(4 * _COLUMNS, 3 * lines + 0.6), layout="constrained")
    panels = figure.subplots(lines, _COLUMNS, squeeze=False).ravel()
    short = labels(selection.problems)
    for axes, problem in zip(panels, selection.problems, strict=False):
        last = min(max(selection.budgets), problem.size)
        exact = RandomSearch.over(problem.values, last).expected_best() / problem.optimum - 1.0
        axes.plot(range(1, last + 1), np.maximum(exact, _LEAST), color="black", ls=":", label="random (exact)")
        for method, colour in chosen.items():
            curve = _mean_gap(problem, grouped[problem.name, method], last)
            width = 2.2 if method == "ours" else 1.0
            places = range(1, len(curve) + 1)
            axes.plot(places, np.maximum(curve, _LEAST), color=colour, lw=width, label=method)
        axes.set(title=short[problem.name], xscale="log", yscale="log", xlabel="evaluations", ylabel="mean gap")
    for axes in panels[len(selection.problems) :]:
        axes.set_axis_off()
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=5, fontsize=8)
    figure.savefig(path, dpi=130)


def _chosen(rows: Sequence[Row], selection: Selection, budget: int) -> dict[str, str]:
    """Return the methods to draw, each with its colour."""
    table: Mapping[str, Mapping[str, Row]] = by_method(rows, budget)
    names = [problem.name for problem in selection.problems]
    means = {m: fmean(row.gap for row in table[m].values()) for m in complete(table, names)}
    peers = sorted(means.keys() - {"ours", "random", EXACT}, key=means.__getitem__)
    own = {"ours": "tab:red"} if "ours" in selection.versions else {}
    return own | dict(zip(peers, _COLOURS, strict=False))


def _mean_gap(problem: Problem, cells: Sequence[Cell], last: int) -> np.ndarray:
    """Return the mean gap after each evaluation, as far as all were allowed to go; one that ended keeps its best."""
    if not cells:
        return np.zeros(0)
    length = min(last, *(last if cell.ended == "space" else cell.budget for cell in cells))
    curves = []
    for cell in cells:
        best = cell.best_so_far(problem.worst)[:length]
        curves.append(np.pad(best, (0, length - len(best)), mode="edge"))
    mean: np.ndarray = np.mean(curves, axis=0) / problem.optimum - 1.0
    return mean
