"""Calibration and the rule, from looks and a search that are written down here."""

import numpy as np
import pytest

from autotune.search.expected_gain import DOUBT
from benchmarks.search.cell import Cell
from benchmarks.search.problem import Problem
from benchmarks.stopping import Look, LookFile, interval, looks_at, report
from spaces import Integer, Space


def look(trials, bound, gained, gap, seed=0):
    return Look("convolution A4000", seed, "1", DOUBT, trials, bound, gained, gap, 0.01)


def rows(text, first):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith(first)]


def test_an_interval_of_a_share():
    # Wilson 1927: 8 of 10.
    assert interval(8, 10) == pytest.approx((0.4901, 0.9433), abs=1e-3)


def test_the_report_tells_how_often_bounds_held_and_where_the_rule_stops():
    looks = [
        look(20, 0.2, 0.3, 0.5),
        look(25, 0.009, 0.0, 0.4),
        look(30, 0.5, 0.1, 0.4),
        look(35, 0.0, 0.0, 0.05),
        look(40, 0.008, 0.0, 0.04),
        look(20, 0.2, 0.1, 0.5, seed=1),
    ]
    text = report(looks)
    # Of two looks after 20 trials one held; in all five of six.
    assert [row[2].split()[0] for row in rows(text, "| 20 ")] == ["50%"]
    assert [row[2].split()[0] for row in rows(text, "| every")] == ["83%"]
    # The first stops at its second dull look in a row, the other never: 40 and 200.
    (found,) = rows(text, "| convolution A4000")
    assert found[1:4] == ["2", "120 (80 to 160)", "50%"]
    assert found[4:] == ["2.50%", "4.0%", "1.00%"]


def test_looks_compare_the_prospect_with_what_came(tmp_path):
    space = Space([Integer.range("x", 1, 100, default=1)])
    problem = Problem("line", space, space.all_indices(), np.arange(100.0, 0.0, -1.0), np.full(100, 1.0))
    places = list(range(60))
    cell = Cell("line", "ours", "1", 0, 200, places, [float(problem.values[k]) for k in places], [1.0] * 60, [], "x")
    found = list(looks_at(problem, cell, 0, DOUBT))
    assert [one.trials for one in found] == list(range(20, 60, 5))
    # From 81 to 61, and to the last there is.
    assert found[0].gained == pytest.approx(81 / 61 - 1)
    assert found[-1].gained == pytest.approx(46 / 41 - 1)
    assert (found[0].gap, found[0].last_gap) == (80.0, 40.0)
    file = LookFile(tmp_path / "looks.jsonl")
    file.add(found)
    again = LookFile(tmp_path / "looks.jsonl")
    assert again.looks == found
    assert again.has(cell, DOUBT)
    assert not again.has(cell, 2.0)
