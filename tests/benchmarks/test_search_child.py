"""Searches by a peer in a process of its own, and what is counted and kept of them."""

import sys
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest

from benchmarks.measured_tables import MeasuredTable
from benchmarks.search.campaign import Limits, open_tasks, run
from benchmarks.search.cell import INVALID, CellFile
from benchmarks.search.child import Child
from benchmarks.search.method import METHODS, Installed, Method
from benchmarks.search.problem import Problem
from benchmarks.search.recording import BudgetSpentError, Recording
from spaces import Constraint, Integer, Space

PEER = str(Path(__file__).with_name("fake_peer.py"))


@pytest.fixture
def problem():
    """Ten pairs with a + b <= 3 as values 10 a + b + 1, of which (3, 0) fails."""
    space = Space(
        [Integer.range("a", 0, 3, default=0), Integer.range("b", 0, 3, default=0)],
        [Constraint("sum", "a + b <= 3", "so it was measured")],
    )
    keys = [frozenset(configuration.items()) for configuration in space.configurations()]
    times = {key: (10.0 * dict(key)["a"] + dict(key)["b"] + 1.0,) * 2 for key in keys}
    del times[frozenset({("a", 3), ("b", 0)})]
    return Problem.of(MeasuredTable("pairs", space, times, dict.fromkeys(keys, 2.0)))


@pytest.fixture
def child():
    with Child(sys.executable, PEER) as started:
        assert started.ready()
        yield started


def searched(child, problem, folder, does, *, budget=50, limit_s=60.0):
    recording = Recording(problem, budget)
    request = {"problem": str(problem.hand_out(folder)), "options": {"does": does}, "seed": 0, "budget": budget}
    return child.search(request, recording, limit_s), recording


def test_a_table_becomes_rows_values_and_costs(problem):
    assert problem.size == 10
    assert problem.rows[-1].tolist() == [3, 0]
    assert np.isnan(problem.values[-1])
    assert problem.optimum == 1.0
    assert problem.worst == 22.0
    assert set(problem.costs_s) == {2.0}


def test_what_a_peer_may_know_holds_no_value_of_a_configuration(problem, tmp_path):
    known = problem.hand_out(tmp_path).read_text()

    assert "22.0" not in known
    assert "a + b <= 3" in known


def test_a_search_of_the_whole_space_finds_the_optimum_and_one_failure(child, problem, tmp_path):
    ended, recording = searched(child, problem, tmp_path, "all")

    assert ended == "method"
    assert recording.places == list(range(10))
    assert min(value for value in recording.values if value is not None) == 1.0
    assert recording.values[-1] is None
    assert len(recording.costs_s) == len(recording.overhead_s) == 10


def test_a_configuration_counts_once(child, problem, tmp_path):
    _, recording = searched(child, problem, tmp_path, "twice")

    assert recording.places == list(range(10))


def test_the_budget_ends_a_search_and_the_same_process_serves_the_next(child, problem, tmp_path):
    ended, recording = searched(child, problem, tmp_path, "all", budget=3)
    again, whole = searched(child, problem, tmp_path, "nearest")

    assert (ended, len(recording.places)) == ("budget", 3)
    assert again == "space"
    assert sorted(whole.places) == list(range(10))
    assert whole.places[0] == 0


def test_an_invalid_configuration_costs_an_evaluation(child, problem, tmp_path):
    _, recording = searched(child, problem, tmp_path, "invalid")

    assert recording.places == [INVALID]
    assert recording.values == [None]
    assert recording.costs_s == [2.0]


@pytest.mark.parametrize(
    ("does", "ended"),
    [("repeats", "repeats"), ("raises", "error: RuntimeError: a defect"), ("dies", "error: the process ended")],
)
def test_a_peer_that_goes_wrong_ends_its_own_search_only(child, problem, tmp_path, does, ended):
    assert searched(child, problem, tmp_path, does)[0] == ended
    assert child.ready()
    assert searched(child, problem, tmp_path, "all")[0] == "method"


def test_a_peer_that_hangs_is_given_up(child, problem, tmp_path):
    assert searched(child, problem, tmp_path, "hangs", limit_s=0.2)[0] == "time"


def test_recording_refuses_more_than_the_budget_and_answers_what_is_known(problem):
    recording = Recording(problem, 2)
    assert recording.evaluate([0, 0]) == 1.0
    assert recording.evaluate([3, 0]) is None

    with pytest.raises(BudgetSpentError, match="budget"):
        recording.evaluate([1, 0])
    assert recording.evaluate([0, 0]) == 1.0


def test_searches_that_are_there_are_not_run_again(problem, tmp_path):
    methods = {METHODS["random"]: Installed("", "1"), METHODS["ours"]: Installed("", "1")}
    budgets = dict.fromkeys(methods, 4)
    cells = CellFile(tmp_path / "cells.jsonl")
    tasks = list(open_tasks([problem], methods, 2, budgets, cells))
    assert len(tasks) == 4
    assert run(tasks, cells, Limits(60.0, 60.0)) == 4

    with (tmp_path / "cells.jsonl").open("a") as file:
        file.write('{"space": "half a li')
    kept = CellFile(tmp_path / "cells.jsonl")
    kept.add(replace(next(iter(kept)), seed=7))

    assert len(list(CellFile(tmp_path / "cells.jsonl"))) == 5
    assert not list(open_tasks([problem], methods, 2, budgets, kept))
    assert len(list(open_tasks([problem], methods, 3, budgets, kept))) == 2
    assert len(list(open_tasks([problem], methods, 2, dict.fromkeys(methods, 5), kept))) == 4
    newer = {method: replace(installed, version="2") for method, installed in methods.items()}
    assert len(list(open_tasks([problem], newer, 2, budgets, kept))) == 4


def test_a_search_that_broke_is_run_again_only_when_asked(problem, tmp_path):
    broken = Method("broken", script=PEER, options={"does": "raises"})
    methods, budgets = {broken: Installed(sys.executable, "1")}, {broken: 4}
    cells = CellFile(tmp_path / "cells.jsonl")
    run(list(open_tasks([problem], methods, 1, budgets, cells)), cells, Limits(60.0, 60.0))

    assert not list(open_tasks([problem], methods, 1, budgets, cells))
    cells.forget_broken()
    assert len(list(open_tasks([problem], methods, 1, budgets, cells))) == 1


def test_the_own_sampler_searches_a_small_space_to_its_end(problem):
    recording = Recording(problem, 50)

    assert METHODS["ours"].run(problem, recording, 0) == "space"
    assert sorted(recording.places) == list(range(10))


def test_a_failure_before_any_success_counts_as_the_worst(problem, tmp_path):
    cells = CellFile(tmp_path / "cells.jsonl")
    methods = {METHODS["random"]: Installed("", "1")}
    run(list(open_tasks([problem], methods, 1, {METHODS["random"]: 10}, cells)), cells, Limits(60.0, 60.0))
    [cell] = cells

    changed = replace(cell, values=[None, 5.0, None, 3.0])

    assert changed.best_so_far(22.0).tolist() == [22.0, 5.0, 5.0, 3.0]
    assert not np.isclose(changed.best_so_far(22.0), nan).any()


@pytest.mark.parametrize("sampler", ["tpe", "multivariate-tpe"])
def test_optuna_made_valid_proposes_every_configuration_once(problem, tmp_path, sampler):
    recording, ended = optuna_search(problem, tmp_path, {"sampler": sampler, "mode": "valid"}, 50)

    assert ended == "space"
    assert sorted(recording.places) == list(range(10))


def test_optuna_of_a_plain_user_pays_for_invalid_configurations_only_with_a_penalty(problem, tmp_path):
    rejecting, _ = optuna_search(problem, tmp_path, {"sampler": "tpe", "mode": "reject"}, 8)
    paying, _ = optuna_search(problem, tmp_path, {"sampler": "tpe", "mode": "penalty"}, 8)

    assert INVALID not in rejecting.places
    assert INVALID in paying.places


def optuna_search(problem, folder, options, budget):
    recording = Recording(problem, budget)
    request = {"problem": str(problem.hand_out(folder)), "options": options, "seed": 0, "budget": budget}
    with Child(sys.executable, "with_optuna.py") as child:
        assert child.ready()
        return recording, child.search(request, recording, 60.0)
