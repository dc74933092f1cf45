import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.feasibility import chance_to_work
from autotune.statistics.gaussian_process import fit, fit_censored

seeds = st.integers(0, 2**32 - 1)

LINE = np.linspace(0.0, 1.0, 6)[:, None]
# A slope, with the last configuration capped.
VALUES = np.linspace(0.0, 1.0, 6)
LAST_IS_A_BOUND = np.arange(6) == 5
ONCE = np.ones(6)


def tried(seed, dimensions=2):
    rng = np.random.default_rng(seed)
    worked = rng.integers(0, 2, 10).astype(float)
    worked[0] = 0.0
    return rng.random((10, dimensions)), worked, rng.random((30, dimensions))


@given(seeds)
def test_while_everything_works_nothing_is_expected_to_fail(seed):
    places, _, candidates = tried(seed)
    assert (chance_to_work(candidates, places, np.ones(10)) == 1.0).all()


@given(seeds)
def test_the_chance_is_one_and_never_reaches_zero(seed):
    places, worked, candidates = tried(seed)
    chances = chance_to_work(np.concatenate([candidates, places]), places, worked)
    assert ((chances > 0) & (chances < 1)).all()


def test_many_failures_at_one_place_do_not_rule_it_out():
    chance = chance_to_work(np.zeros((1, 1)), np.zeros((100, 1)), np.zeros(100))
    assert 0 < chance[0] < 0.02


def test_the_chance_rises_with_the_distance_from_a_failure():
    chances = chance_to_work(np.linspace(0, 3, 50)[:, None], np.zeros((1, 1)), np.zeros(1))
    assert (np.diff(chances) > 0).all()
    assert chances[0] < 0.5
    assert chances[-1] > 0.85


def test_a_success_near_by_makes_up_for_a_failure():
    place = np.array([[0.5]])
    failed = chance_to_work(place, np.array([[0.4]]), np.zeros(1))
    both = chance_to_work(place, np.array([[0.4], [0.6]]), np.array([0.0, 1.0]))
    assert both > failed


@pytest.mark.parametrize("dimensions", [1, 3, 10])
def test_a_corner_that_fails_is_told_from_the_one_that_works(dimensions):
    rng = np.random.default_rng(1)
    places = rng.random((60, dimensions))
    worked = (places[:, 0] < 0.7).astype(float)
    good, bad = np.full((1, dimensions), 0.5), np.full((1, dimensions), 0.5)
    good[:, 0], bad[:, 0] = 0.1, 0.95
    assert chance_to_work(good, places, worked) > chance_to_work(bad, places, worked) + 0.1


def censored_mean(bound):
    values = np.where(LAST_IS_A_BOUND, bound, VALUES)
    return float(fit_censored(LINE, values, ONCE, LAST_IS_A_BOUND).predict(LINE[5:])[0][0])


def without():
    return float(fit(LINE[:5], VALUES[:5], ONCE[:5]).predict(LINE[5:])[0][0])


def test_a_bound_far_above_the_prediction_raises_it():
    assert censored_mean(3.0) > without() + 1.0


def test_a_bound_below_the_prediction_hardly_changes_it():
    assert censored_mean(-3.0) == pytest.approx(without(), abs=0.1)


def test_a_bound_is_not_taken_for_a_value():
    # A run that was stopped early must not look good, however early it was.
    values = np.where(LAST_IS_A_BOUND, -3.0, VALUES)
    taken = float(fit(LINE, values, ONCE).predict(LINE[5:])[0][0])
    assert censored_mean(-3.0) > taken + 1.0


@pytest.mark.slow
@given(st.floats(-5, 1e6))
def test_what_is_filled_in_is_a_number_no_better_than_the_bound(bound):
    values = np.where(LAST_IS_A_BOUND, bound, VALUES)
    filled = fit_censored(LINE, values, ONCE, LAST_IS_A_BOUND).y
    assert np.isfinite(filled).all()
    assert filled[5] >= bound
    assert (filled[:5] == VALUES[:5]).all()


def test_the_values_that_were_given_stay_as_they_are():
    values = VALUES.copy()
    fit_censored(LINE, values, ONCE, LAST_IS_A_BOUND)
    assert (values == VALUES).all()


@pytest.mark.parametrize("known", [6, 1, 0])
def test_without_bounds_or_hardly_any_value_it_is_the_plain_fit(known):
    censored = np.arange(6) >= known
    assert (fit_censored(LINE, VALUES, ONCE, censored).weights == fit(LINE, VALUES, ONCE).weights).all()


def test_of_many_trials_some_speak_for_all():
    rng = np.random.default_rng(0)
    places, candidates = rng.random((4000, 2)), rng.random((50, 2))
    worked = (places[:, 0] > rng.normal(0.3, 0.05, 4000)).astype(float)
    found = chance_to_work(candidates, places, worked)
    few = [chance_to_work(candidates, places[start::4], worked[start::4]) for start in range(4)]
    assert found == pytest.approx(np.mean(few, axis=0), abs=0.05)
    assert ((found > 0.0) & (found < 1.0)).all()
