"""The expected gain of the next trials: for known answers, and in flat and other spaces."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.study import StudyDirection

from autotune.records.expected_gain import AHEAD, ExpectedGain
from autotune.search.base import History, SpaceExhaustedError
from autotune.search.expected_gain import CandidatePosterior, expected_gain_of
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.gaussian_process import above_bound
from autotune.storage.observation import Observation
from spaces import Integer, Space

SQUARE = Space([Integer.range("x", 0, 19, default=10), Integer.range("y", 0, 19, default=10)])


def candidates(mean, covariance, works=None, best=0.0, own=0.0):
    mean = np.array(mean, dtype=float)
    works = np.ones(len(mean)) if works is None else np.array(works)
    return CandidatePosterior(mean, np.array(covariance, dtype=float), works, own, own, best, best)


def most(scored, trials, doubt=1.0):
    """Return the gain that is not exceeded with probability 0.9."""
    return np.quantile(scored.gains(trials, 40_000, np.random.default_rng(0), doubt), 0.9)


def history(value_of, trials=24, direction=StudyDirection.MINIMIZE, space=SQUARE):
    rows = space.sample_indices(np.random.default_rng(0), trials)
    observations = [Observation(value=value_of(**found)) for found in space.decode(rows)]
    return History(rows, observations, direction)


def prospect(told, space=SQUARE, **options):
    return expected_gain_of(ValidSetSampler(space, seed=1, **options), told)


def test_scores_of_paused_trainings_give_no_gain():
    told = history(lambda x, y: 1.0 + x + y)
    first, *others = told.observations
    assert prospect(told) is not None
    paused = replace(first, partial=True, curve=((1, first.value),))
    assert prospect(replace(told, observations=[paused, *others])) is None


def test_one_candidate_gains_what_a_normal_variable_does():
    # P(Z < 1.2816) = 0.9.
    assert most(candidates([0.0], [[1.0]]), 1) == pytest.approx(1.2816, abs=0.03)
    assert most(candidates([0.0], [[1.0]]), 1, doubt=2.0) == pytest.approx(2 * 1.2816, abs=0.06)
    assert most(candidates([1.2816], [[1.0]]), 1) == pytest.approx(0.0, abs=0.03)


def test_two_independent_candidates_gain_the_better_of_both():
    # P(both > -1.632) = 0.9.
    assert most(candidates([0.0, 0.0], np.eye(2)), 2) == pytest.approx(1.632, abs=0.03)


def test_what_is_the_same_is_gained_once():
    assert most(candidates([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]]), 2) == pytest.approx(1.2816, abs=0.03)


def test_what_is_a_configuration_s_own_is_gained_too():
    # The smooth part is known to be zero; each of the two candidates has its own difference.
    assert most(candidates([0.0, 0.0], 1e-12 * np.eye(2), own=1.0), 2) == pytest.approx(1.632, abs=0.03)


def test_what_is_known_above_a_bound():
    # The half-normal distribution has mean sqrt(2 / pi) and variance 1 - 2 / pi.
    mean, deviation = above_bound(np.zeros(1), np.ones(1), np.zeros(1))
    assert mean[0] == pytest.approx((2 / np.pi) ** 0.5)
    assert deviation[0] == pytest.approx((1 - 2 / np.pi) ** 0.5)
    # A bound far below the mean changes nothing; for a bound far above the mean, the value is just above the bound.
    mean, deviation = above_bound(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([-9.0, 50.0]))
    assert mean == pytest.approx([0.0, 50.0], abs=1e-6)
    assert deviation[0] == pytest.approx(1.0)


def test_the_search_learns_while_it_goes():
    """The third candidate is the opposite of the first: if the first is bad, the third is next, not the second."""
    covariance = np.array([[1.0, 0.0, -1.0], [0.0, 0.5, 0.0], [-1.0, 0.0, 1.0]])
    mean = [0.0, 0.1, 0.2]
    without = most(candidates(mean[:2], covariance[:2, :2]), 2)
    assert most(candidates(mean, covariance), 2) > without + 0.1


def test_candidates_that_hardly_run_are_left_alone():
    scored = candidates([-1.0, -0.9], 1e-8 * np.eye(2), works=[1e-6, 1.0])
    assert most(scored, 1) == pytest.approx(0.9, abs=1e-2)


@given(
    st.integers(1, 8).flatmap(
        lambda m: st.tuples(
            st.lists(st.floats(-2.0, 2.0), min_size=m, max_size=m),
            st.lists(st.lists(st.floats(-1.0, 1.0), min_size=m, max_size=m), min_size=m, max_size=m),
        )
    ),
    st.integers(1, 10),
    st.integers(0, 100),
)
@settings(max_examples=60, deadline=None)
def test_gains_are_none_or_more_and_grow_with_the_trials(drawn, trials, seed):
    mean, root = drawn
    scored = candidates(mean, np.array(root) @ np.array(root).T)
    fewer, more = (scored.gains(count, 20, np.random.default_rng(seed)) for count in (trials, trials + 1))
    assert (fewer >= 0.0).all()
    assert (more >= fewer).all()
    assert np.isfinite(more).all()


def test_a_flat_space_promises_nothing_and_a_slope_much():
    flat = prospect(history(lambda x, y: 10.0 + 1e-6 * (x + y)))
    steep = prospect(history(lambda x, y: np.exp(0.1 * (x + y)), trials=15))
    assert flat is not None
    assert steep is not None
    assert flat.gain < 0.001
    assert steep.gain > 0.05
    assert (flat.trials, flat.probability) == (AHEAD, 0.9)


def test_a_bowl_promises_less_once_its_bottom_was_found():
    def bowl(x, y):
        return np.exp(0.02 * ((x - 10) ** 2 + (y - 7) ** 2))

    def told(x_values):
        rows = SQUARE.indices([{"x": x, "y": y} for x in x_values for y in (1, 4, 7, 10, 13, 16)])
        return History(rows, [Observation(value=bowl(**one)) for one in SQUARE.decode(rows)], StudyDirection.MINIMIZE)

    before, after = prospect(told((15, 16, 17, 18, 19))), prospect(told((4, 7, 10, 13, 16)))
    assert before.gain > 0.2
    assert after.gain < 0.05


def test_what_is_better_when_it_is_greater_has_the_same_prospect():
    times = history(lambda x, y: 5.0 + x + y)
    rates = history(lambda x, y: 1.0 / (5.0 + x + y), direction=StudyDirection.MAXIMIZE)
    assert prospect(rates).gain == pytest.approx(prospect(times).gain, rel=1e-3)


@pytest.mark.slow
def test_the_unit_does_not_matter_and_the_same_history_gives_the_same():
    told = history(lambda x, y: 5.0 + x + y)
    milli = history(lambda x, y: 1e3 * (5.0 + x + y))
    assert prospect(told) == prospect(told)
    assert prospect(milli).gain == pytest.approx(prospect(told).gain, rel=1e-3)


def test_failures_and_bounds_are_no_obstacle():
    told = history(lambda x, y: 5.0 + x + y)
    changed = [Observation(), Observation(bound=30.0), Observation(pending=True), *told.observations[3:]]
    assert prospect(History(told.rows, changed, told.direction)).gain >= 0.0


def test_nothing_is_said_where_nothing_is_known():
    few = history(lambda x, y: 1.0 + x, trials=14)
    assert prospect(few) is None
    # Bounds do not replace values.
    more = history(lambda x, y: 1.0 + x, trials=40)
    capped = [*few.observations[:5], *[Observation(bound=9.0)] * 35]
    assert prospect(History(more.rows, capped, more.direction)) is None
    assert prospect(history(lambda x, y: 1.0 + x), model=False) is None
    # A ratio to a value that is not positive has no meaning.
    assert prospect(history(lambda x, y: x - 3.0)) is None
    failed = History(history(lambda x, y: 1.0).rows, [Observation()] * 24, StudyDirection.MINIMIZE)
    assert prospect(failed) is None


def test_no_more_trials_are_promised_than_are_left():
    line = Space([Integer.range("x", 0, 23, default=8)])
    rows = line.all_indices()
    told = History(rows[:20], [Observation(value=20.0 + k) for k in range(20)], StudyDirection.MINIMIZE)
    assert prospect(told, line) == ExpectedGain(4, prospect(told, line).gain)
    with pytest.raises(SpaceExhaustedError):
        prospect(History(rows, [Observation(value=20.0)] * 24, StudyDirection.MINIMIZE), line)
