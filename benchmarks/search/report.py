"""Results as Markdown tables, and as one CSV file with all figures."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.search.problem import Problem
from benchmarks.search.summary import EXACT, Row, Selection, by_method, complete


@dataclass(frozen=True)
class Figure:
    """A table's title (with `{budget}`), the text of a cell, and the number whose mean orders the methods."""

    title: str
    show: Callable[[Row], str]
    number: Callable[[Row], float]
    more_is_better: bool = False


def _with_error(value: float, error: float, digits: int) -> str:
    """Return a mean with its standard error, or alone if it was computed exactly."""
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if error > 0 else "")


GAP = Figure(
    "Mean gap after {budget} evaluations, % (± standard error)",
    lambda row: _with_error(100 * row.gap, 100 * row.gap_error, 1),
    lambda row: 100 * row.gap,
)
OTHERS = (
    Figure(
        "Median gap after {budget} evaluations, %",
        lambda row: f"{100 * row.gap_median:.1f}",
        lambda row: 100 * row.gap_median,
    ),
    Figure(
        "Evaluations to within 5 % of the optimum, at most {budget} + 1 (share of searches that got there)",
        lambda row: f"{row.to_5:.1f} ({row.reached_5:.0%})",
        lambda row: row.to_5,
    ),
    Figure(
        "Evaluations to within 1 % of the optimum, at most {budget} + 1 (share of searches that got there)",
        lambda row: f"{row.to_1:.1f} ({row.reached_1:.0%})",
        lambda row: row.to_1,
    ),
    Figure(
        "Performance over time (0 random search, 1 the optimum at once), {budget} evaluations' worth",
        lambda row: _with_error(row.score, row.score_error, 3),
        lambda row: row.score,
        more_is_better=True,
    ),
    Figure(
        "Overhead of a proposal at {budget} evaluations, ms",
        lambda row: f"{row.overhead_ms:.3g}",
        lambda row: row.overhead_ms,
    ),
)


def labels(problems: Sequence[Problem]) -> dict[str, str]:
    """Return a short name for each space."""
    short = {}
    for number, problem in enumerate(problems, 1):
        name = problem.name.removeprefix("convolution ")
        short[problem.name] = name if len(name) <= 12 else f"{name.split()[0]} #{number}"
    return short


def report(rows: Sequence[Row], selection: Selection) -> str:
    """Return the whole report."""
    parts = [_spaces(selection), _versions(selection)]
    parts += [_table(rows, selection, budget, GAP) for budget in selection.budgets]
    parts += [_table(rows, selection, budget, figure) for budget in _scored(selection.budgets) for figure in OTHERS]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Write every row with every figure."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def _scored(budgets: Sequence[int]) -> list[int]:
    """Return the budgets whose other scores are shown: 50, which all methods have, and the largest."""
    return sorted({budget for budget in budgets if budget in (50, max(budgets))})


def _spaces(selection: Selection) -> str:
    lines = ["# Search on measured tables", "", "| space | configurations | fail | within 5 % | median gap |  |"]
    lines.append("|---|---|---|---|---|---|")
    short = labels(selection.problems)
    for problem in selection.problems:
        good = int((problem.values <= 1.05 * problem.optimum).sum())
        failed = int(np.isnan(problem.values).sum())
        median = float(np.nanmedian(problem.values)) / problem.optimum - 1.0
        lines.append(f"| {short[problem.name]} | {problem.size} | {failed} | {good} | {median:.0%} | {problem.name} |")
    return "\n".join(lines)


def _versions(selection: Selection) -> str:
    return "Versions: " + ", ".join(f"{name} {version}" for name, version in selection.versions.items() if version)


def _table(rows: Sequence[Row], selection: Selection, budget: int, figure: Figure) -> str:
    """Return one table, the best mean over all spaces first; methods that lack a space come last, without a mean."""
    table = by_method(rows, budget)
    short = labels(selection.problems)
    sign = -1.0 if figure.more_is_better else 1.0
    means = {method: fmean(figure.number(table[method][name]) for name in short) for method in complete(table, short)}
    lines = [f"## {figure.title.format(budget=budget)}", ""]
    lines += ["| method | seeds | mean | " + " | ".join(short.values()) + " |", "|---" * (len(short) + 3) + "|"]
    for method in sorted(table, key=lambda m: sign * means[m] if m in means else float("inf")):
        found = table[method]
        seeds = "" if method == EXACT else str(min(row.seeds for row in found.values()))
        cells = [figure.show(found[name]) if name in found else "" for name in short]
        mean = f"{means[method]:.3g}" if method in means else ""
        lines.append(f"| {method} | {seeds} | {mean} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
