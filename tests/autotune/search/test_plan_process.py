"""Plans from a process of its own: equal to those made here, dropped in time, and no process remains."""

import numpy as np
import psutil
import pytest
from optuna.study import StudyDirection

from autotune.search import gp_sampler as sampler_module
from autotune.search.base import History
from autotune.search.batch_proposals import PlanOrder
from autotune.search.gp_sampler import ValidSetSampler, best_trial
from autotune.search.plan_process import PlanProcess, plan_in_process
from autotune.storage.observation import Observation
from tests.autotune.search.test_batch_proposals import RUNNING, SQUARE, history, proposed, seconds

ROWS = SQUARE.sample_indices(np.random.default_rng(0), 250)


def after(ended):
    """Return trials that ended, the first of them as the best, and fifty running ones."""
    values = [0.9, *map(seconds, SQUARE.decode(ROWS[1:ended]))]
    told = [Observation(value=value) for value in values]
    return History(ROWS[: ended + 50], [*told, *[RUNNING] * 50], StudyDirection.MINIMIZE)


def order(told):
    return PlanOrder(told, (), 0, np.random.default_rng(3))


class Slowly:
    """Makes plans at once, but returns each only to `wait`, or after a call of `arrive`."""

    is_warm, is_lost = True, False

    def __init__(self):
        self.orders, self.waits = [], 0
        self._plan = self._made = None

    def begin(self, wanted):
        if self._plan is not None:
            return False
        self.orders.append(wanted)
        self._plan = ValidSetSampler(SQUARE).new_plan(wanted.history, wanted.rng, wanted.waiting, ahead=True)
        return True

    def arrive(self):
        self._made, self._plan = self._plan, None

    def take_finished_plan(self):
        made, self._made = self._made, None
        return made

    def wait(self):
        self.waits += self._plan is not None
        made, self._plan = self._plan, None
        return made


@pytest.fixture
def slowly():
    return Slowly()


@pytest.fixture
def sampler(slowly):
    made = ValidSetSampler(SQUARE)
    made.set_plan_maker(slowly)
    return made


@pytest.mark.slow
def test_a_process_makes_the_plan_that_would_be_made_here():
    told = history(60, 50)
    here = ValidSetSampler(SQUARE).new_plan(told, np.random.default_rng(3), 0, ahead=True)
    with PlanProcess(SQUARE) as process:
        assert process.take_finished_plan() is None
        assert process.begin(order(told))
        assert not process.begin(order(told))
        there = process.wait()
        pid = process._process.pid
        assert process.is_warm
    assert (there.best(told.rows, 10) == here.best(told.rows, 10)).all()
    assert not psutil.pid_exists(pid)


def test_where_the_process_is_killed_plans_are_made_here():
    made = ValidSetSampler(SQUARE)
    with plan_in_process(made):
        told = history(60, 50)
        process = made._plan_maker
        assert process.begin(order(told))
        process._process.kill()
        assert process.wait() is None
        assert process.is_lost
        assert len(proposed(made, told, 2)) == 2


def test_a_plan_serves_on_while_the_next_one_is_made(sampler, slowly):
    proposed(sampler, after(100), 1)
    assert (len(slowly.orders), slowly.waits) == (1, 1)
    proposed(sampler, after(110), 3)
    assert (len(slowly.orders), slowly.waits) == (2, 1)
    slowly.arrive()
    proposed(sampler, after(111), 1)
    assert (len(slowly.orders), slowly.waits) == (2, 1)


def test_a_plan_is_thrown_away_when_too_many_runs_have_ended(sampler, slowly):
    proposed(sampler, after(100), 1)
    proposed(sampler, after(111), 1)
    assert slowly.waits == 2


def test_a_plan_is_thrown_away_when_another_trial_is_the_best(sampler, slowly):
    told = after(60)
    proposed(sampler, told, 1)
    observations = list(told.observations)
    observations[60] = Observation(value=0.5)
    better = History(told.rows, observations, told.direction)
    assert best_trial(better) == 60 != best_trial(told)
    # The plan ordered before is not valid either.
    slowly.begin(order(told))
    proposed(sampler, better, 1)
    assert slowly.orders[-1].history is better
    assert slowly.waits == 3


def test_with_few_in_flight_nothing_is_made_elsewhere(sampler, slowly):
    proposed(sampler, history(30, 10), 2)
    assert slowly.orders == []


def test_no_process_is_waited_for_that_still_starts(sampler, slowly, monkeypatch):
    slowly.is_warm = False
    here = []
    original = sampler_module.fit_model
    monkeypatch.setattr(sampler_module, "fit_model", lambda *given, **more: here.append(1) or original(*given, **more))
    proposed(sampler, after(60), 2)
    assert slowly.waits == 0
    assert len(here) == 2  # one of them is from the order


def test_the_best_is_that_of_the_direction():
    values = [Observation(value=2.0), RUNNING, Observation(value=5.0), Observation()]
    rows = SQUARE.sample_indices(np.random.default_rng(0), 4)
    assert best_trial(History(rows, values, StudyDirection.MINIMIZE)) == 0
    assert best_trial(History(rows, values, StudyDirection.MAXIMIZE)) == 2
    assert best_trial(History(rows[:0], [], StudyDirection.MINIMIZE)) == -1
