"""The values of an earlier study are points of the model, believed as far as this study's own values agree."""

import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.search.base import History
from autotune.search.batch_proposals import CROWD
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.earlier_values import EarlierValues
from autotune.storage.observation import Observation
from spaces import Integer, Space

SPACE = Space([Integer.range("x", 0, 40, default=40), Integer.range("y", 0, 3, default=0)])
ROWS = SPACE.indices([{"x": x, "y": y} for x in range(0, 41, 5) for y in (0, 2)])


def log_cost(rows, best=10):
    return np.abs(rows[:, 0] - best) / 20 + 0.1 * rows[:, 1]


EARLIER = EarlierValues(SPACE, ROWS, log_cost(ROWS), np.ones(len(ROWS)), winner=int(log_cost(ROWS).argmin()))


def mean(costs, rows, at):
    every = np.ones(len(rows), dtype=bool)
    process = EARLIER.fit(rows, costs, np.ones(len(rows)), ~every, every)
    return process.predict(SPACE.traits_of(at))[0]


def test_where_runs_agree_an_earlier_value_tells_what_was_not_measured_here():
    rows = SPACE.indices([{"x": x, "y": 0} for x in (40, 30, 20)])
    asked = SPACE.indices([{"x": 10, "y": 0}, {"x": 0, "y": 2}])
    # This release is faster as a whole, by a factor.
    assert mean(log_cost(rows) - 3.0, rows, asked) == pytest.approx(log_cost(asked) - 3.0, abs=0.1)


def test_a_failed_run_does_not_shift_the_earlier_values():
    rows = SPACE.indices([{"x": 40, "y": 0}, {"x": 10, "y": 0}])
    # The second trial failed, so it counts as bad as the first; the earlier study measured 0 there.
    costs, valued = np.array([1.5, 1.5]), np.array([True, False])
    process = EARLIER.fit(rows, costs, np.ones(2), np.zeros(2, dtype=bool), valued)
    assert process.joint.y.min() == pytest.approx(0.0)


def test_hints_are_no_prior_beside_an_earlier_study():
    sampler, hints = ValidSetSampler(SPACE, seed=1), SPACE.indices([{"x": x, "y": 0} for x in (5, 10, 15)])
    sampler.set_hints(hints)
    rows = np.concatenate([SPACE.indices([{"x": 40, "y": 0}, {"x": 30, "y": 2}]), hints[:2]])
    values = [Observation(value=float(np.exp(cost))) for cost in log_cost(rows)]
    history = History(rows, values, StudyDirection.MINIMIZE)
    assert sampler.follows_hints(history)
    sampler.set_earlier_values(EARLIER)
    assert not sampler.follows_hints(history)


def test_where_runs_disagree_earlier_values_fade():
    rows = SPACE.indices([{"x": x, "y": y} for x in range(0, 41, 4) for y in (0, 3)])
    asked = SPACE.indices([{"x": 10, "y": 0}, {"x": 30, "y": 0}])
    assert mean(log_cost(rows, best=30), rows, asked) == pytest.approx(log_cost(asked, best=30), abs=0.1)


@pytest.mark.parametrize(
    ("cost", "held"), [(0.0, True), (0.4, True), (0.46, True), (0.5, False), (np.inf, False), (np.nan, True)]
)
def test_a_winner_holds_if_it_keeps_most_of_its_gain(cost, held):
    """The earlier gain over the default is 1.5 as a logarithm."""
    rows = SPACE.indices([{"x": 40, "y": 0}, {"x": 10, "y": 0}])
    assert EARLIER.has_held(rows, np.array([1.5, cost])) is held
    assert EARLIER.has_held(rows[:1], np.array([1.5]))


def test_many_runs_in_flight_are_proposed_with_them():
    sampler = ValidSetSampler(SPACE, seed=1)
    sampler.set_earlier_values(EARLIER)
    rows = SPACE.indices([{"x": 40, "y": 0}, {"x": 10, "y": 0}, *({"x": x, "y": 1} for x in range(CROWD))])
    values = [Observation(value=float(np.exp(cost))) for cost in log_cost(rows[:2])]
    history = History(rows, [*values, *[Observation(pending=True)] * CROWD], StudyDirection.MINIMIZE)
    assert abs(sampler.propose(history)["x"] - 10) <= 5
