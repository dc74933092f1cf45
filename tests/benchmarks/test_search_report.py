"""Figures and tables of the comparison of searches, from cells that are written down here."""

import csv

import numpy as np
import pytest

from benchmarks.search.cell import Cell
from benchmarks.search.picture import draw
from benchmarks.search.problem import Problem
from benchmarks.search.report import report, write_csv
from benchmarks.search.summary import EXACT, Selection, by_method, rows
from spaces import Integer, Space


def problem(name):
    """1, 2, ..., 100 in one parameter; every evaluation takes two seconds."""
    space = Space([Integer.range("x", 1, 100, default=1)])
    return Problem(name, space, space.all_indices(), np.arange(1.0, 101.0), np.full(100, 2.0))


def cell(space, method, seed, values, *, budget=4, version="1"):
    count = len(values)
    overheads = [0.001 * (k + 1) for k in range(count)]
    return Cell(space, method, version, seed, budget, [0] * count, values, [2.0] * count, overheads, "budget")


@pytest.fixture
def selection():
    return Selection([problem("one"), problem("two")], {"a": "1", "b": "1"}, 30, [2, 4])


CELLS = [
    cell("one", "a", 0, [50.0, None, 2.0, 1.0]),
    cell("one", "a", 1, [40.0, 30.0, 20.0, 3.0]),
    cell("two", "a", 0, [50.0, 40.0, 30.0, 20.0]),
    cell("one", "b", 0, [1.0, 2.0, 3.0, 4.0]),
    cell("two", "b", 0, [9.0, 8.0], budget=2),
    cell("two", "b", 1, [9.0, 8.0, 7.0, 6.0], version="0"),
]


def test_a_row_is_what_its_seeds_found(selection):
    row = by_method(rows(CELLS, selection), 4)["a"]["one"]

    assert row.seeds == 2
    # Gaps of 0 and 2: the mean is 1, and so is the standard error.
    assert (row.gap, row.gap_error, row.gap_median) == pytest.approx((1.0, 1.0, 1.0))
    # One got there at its fourth evaluation, the other not in four.
    assert (row.to_5, row.reached_5) == (4.5, 0.5)
    assert row.overhead_ms == pytest.approx(2.5)


def test_a_search_counts_only_at_the_budgets_it_had_and_in_the_installed_version(selection):
    found = rows(CELLS, selection)

    assert by_method(found, 2)["b"]["two"].gap == 7.0
    assert "two" not in by_method(found, 4)["b"]


def test_random_search_is_exact(selection):
    """The least of n of 1..100 is expected to be 101 / (n + 1)."""
    row = by_method(rows([], selection), 4)[EXACT]["one"]

    assert row.gap == pytest.approx(101 / 5 - 1)
    assert row.to_5 == pytest.approx(5 - 0.04 - 0.03 - 0.02 - 0.01)
    assert row.score == 0.0


def test_the_best_mean_comes_first_and_what_lacks_a_space_last(selection):
    text = report(rows(CELLS, selection), selection)
    table = text.split("## Mean gap after 4 evaluations")[1].split("##")[0]
    methods = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]

    assert methods == ["method", "a", EXACT, "b"]
    assert "| a | 1 | 1e+03 | 100.0 ± 100.0 | 1900.0 |" in table


def test_the_numbers_and_the_picture_are_written(selection, tmp_path):
    found = rows(CELLS, selection)
    write_csv(found, tmp_path / "all.csv")
    draw(CELLS, found, selection, tmp_path / "all.png")

    with (tmp_path / "all.csv").open() as file:
        written = list(csv.DictReader(file))
    assert {(row["method"], row["budget"]) for row in written} >= {("a", "4"), ("b", "2"), (EXACT, "4")}
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
