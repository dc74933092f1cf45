from dataclasses import replace

import numpy as np
import pytest

from autotune.performance.regression.cost_model import CostModel
from autotune.performance.regression.table import Table
from objectives.shapes.costs import Costs
from spaces.expressions.quantities import column_of

RANKS = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
DOUBTS = {"computing": 0.5, "messages": 1.5}


def table(builds=("a",), ranks=RANKS, work="water", timers=None, machines=("m",)):
    many = np.tile(ranks, len(builds) * len(machines))
    costs = Costs({"computing": 100.0 / many, "messages": 0.01 * (many - 1.0)}, DOUBTS, 0.3, {"send": ("messages",)})
    names = [(machine, build) for machine in machines for build in builds for _ in ranks]
    groups = {
        "machine": column_of([machine for machine, _ in names]),
        "installation": column_of([build for _, build in names]),
        "build": column_of([f"{machine} {build}" for machine, build in names]),
        "workload": column_of([work] * len(many)),
    }
    return Table({"np": many}, {}, costs, groups, timers or {})


def truth(rows, computing=0.0, messages=0.0):
    seconds = rows.costs.seconds
    return np.log(np.exp(computing) * seconds["computing"] + np.exp(messages) * seconds["messages"])


def fitted(rows, y):
    model = CostModel.fit(rows, y, np.ones(len(y)))
    assert model is not None
    return model


NOTHING = fitted(table().at(np.zeros(0, dtype=np.intp)), np.zeros(0))


def test_without_measurements_it_says_what_is_known_of_the_costs():
    rows = table()
    drawn = NOTHING.draws(rows)
    assert np.median(drawn, axis=0) == pytest.approx(truth(rows), abs=0.5)
    # Messages of an unknown build make a prediction less certain.
    assert drawn.std(axis=0)[-1] > drawn.std(axis=0)[0]


def test_one_run_moves_its_build_towards_itself():
    rows = table(("slow",))
    y = truth(rows, computing=1.0)
    model = fitted(rows.at(np.array([0])), y[:1])
    before, after = NOTHING.predict(rows)[2], model.predict(rows)[2]
    assert before < after < y[2]
    assert model.draws(rows).std(axis=0)[2] < NOTHING.draws(rows).std(axis=0)[2]


def test_many_runs_determine_the_rates_of_their_build_and_inform_about_others():
    rows = table(("fast", "slow"))
    slow = np.arange(len(rows)) >= len(RANKS)
    y = np.where(slow, truth(rows, 0.5, 2.0), truth(rows))
    model = fitted(rows, y)
    assert model.predict(rows) == pytest.approx(y, abs=0.1)
    third = table(("third",))
    predicted = model.predict(third)
    assert (truth(third) - 0.1 < predicted).all()
    assert (predicted < truth(third, 0.5, 2.0) + 0.3).all()


def test_an_installation_is_taken_to_another_machine():
    builds = ("usual", "fine", "good", "slow")
    known = table(builds, machines=("m", "n"))
    model = fitted(known, truth(known) + np.where(known.groups["installation"] == "slow", 1.5, 0.0))
    there = table(("usual", "slow"), machines=("other",))
    usual, slow = np.split(model.predict(there) - truth(there), 2)
    assert np.abs(usual).max() < 0.3
    assert (slow > 0.8).all()


def test_timers_of_one_run_tell_its_terms_apart():
    rows = table(("b",))
    y = truth(rows, messages=3.0)
    one = rows.at(np.array([4]))
    told = replace(one, timers={"send": np.exp(3.0) * one.costs.seconds["messages"]})
    without, model = fitted(one, y[4:5]), fitted(told, y[4:5])
    away, near = (np.abs(found.predict(rows) - y)[-1] for found in (without, model))
    assert near < 0.5 * away


def test_a_disturbed_run_tells_little():
    rows = table(("a",), np.repeat(RANKS, 3))
    y = truth(rows)
    y[7] += 3.0
    assert fitted(rows, y).predict(table()) == pytest.approx(truth(table()), abs=0.15)


def test_one_run_of_a_machine_counts_beside_thousands_of_others():
    rare = [f"rare {number}" for number in range(6)]
    rows = table(machines=("usual", *rare))
    y = truth(rows) + np.where(rows.groups["machine"] == "usual", 0.0, 1.0)
    own = len(RANKS) * np.arange(1, 7)
    known = np.concatenate([np.tile(np.arange(len(RANKS)), 2_000), own])
    off = CostModel.fit(rows.at(known), y[known], np.ones(len(known))).predict(rows)[own] - y[own]
    assert np.abs(off).max() < 0.5


def test_rows_with_an_unknown_term_are_left_out_and_not_predicted():
    rows = table()
    holed = replace(
        rows.costs, seconds={**rows.costs.seconds, "messages": np.append(np.nan, rows.costs.seconds["messages"][1:])}
    )
    model = fitted(replace(rows, costs=holed), np.append(50.0, truth(rows)[1:]))
    assert model.predict(rows) == pytest.approx(truth(rows), abs=0.2)
    assert np.isnan(model.predict(replace(rows, costs=holed))[0])


def test_nothing_is_fitted_where_nobody_knows_the_costs():
    assert CostModel.fit(replace(table(), costs=None), truth(table()), np.ones(len(RANKS))) is None


def test_what_was_measured_is_predicted_though_its_parts_are_not_known():
    rows = table(("b",))
    y = truth(rows) + 1.0
    one = rows.at(np.array([5]))
    assert fitted(one, y[5:]).predict(one) == pytest.approx(y[5:], abs=0.15)


def test_timers_of_a_rank_that_others_keep_waiting_do_not_count():
    rows = table(("b",))
    y = truth(rows, messages=3.0)
    idle = {"send": 0.02 * np.exp(y)}
    waiting = replace(rows, costs=replace(rows.costs, timed=np.zeros(len(rows), dtype=bool)), timers=idle)
    assert fitted(waiting, y).predict(rows) == pytest.approx(fitted(rows, y).predict(rows))
    assert fitted(replace(rows, timers=idle), y).predict(rows) != pytest.approx(fitted(rows, y).predict(rows), abs=0.01)


def test_one_slow_build_hardly_moves_a_new_one_and_is_named_slow():
    rows = table(("a", "b", "c", "slow"))
    slow = np.arange(len(rows)) >= 3 * len(RANKS)
    y = truth(rows) + np.where(slow, np.log(7.0), 0.0)
    model = fitted(rows, y)
    # The level of a new build of this machine is that of usual ones, not a mean of all.
    assert model.predict(table(("new",))) == pytest.approx(truth(table()), abs=0.3)
    assert model.slowness(rows.at(np.flatnonzero(slow))) == pytest.approx(7.0, rel=0.25)
    assert model.slowness(rows.at(np.flatnonzero(~slow))) == pytest.approx(1.0, rel=0.2)


def test_a_build_on_a_slow_machine_is_not_slow():
    rows = table(("a", "b", "c", "d"))
    count = len(RANKS)
    machine = np.repeat(["first", "second", "slow", "slow"], count).astype(object)
    rows = replace(rows, groups={**rows.groups, "machine": machine})
    is_slow = machine == "slow"
    model = fitted(rows, truth(rows) + np.where(is_slow, np.log(3.0), 0.0))
    assert model.slowness(rows.at(np.flatnonzero(is_slow))) < 1.5
