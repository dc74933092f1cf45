from math import exp, log

import numpy as np
import pytest

from autotune.statistics.pace import Pace
from autotune.statistics.pace_errors import SHARES, TimedRun, changes_of, factors, looks


def timeline(seconds, until=100):
    return tuple((step, seconds(step)) for step in range(until + 1))


PACE = Pace(timeline(float), elapsed_s=100.0, value=100.0)


def told(seconds, until=100):
    return TimedRun(timeline(seconds, until), seconds(100) if until == 100 else None)


def test_a_run_is_looked_at_after_a_tenth_of_its_steps_and_whenever_they_have_doubled():
    assert looks(PACE) == (10, 20, 40)


def test_the_forecast_of_a_steady_run_does_not_change():
    assert changes_of(PACE, told(lambda step: 3.0 + 2.0 * step)) == pytest.approx((0.0,) * len(SHARES))


def test_a_run_that_was_stopped_tells_what_changed_until_then():
    changes = changes_of(PACE, told(lambda step: 2.0 * step, until=45))
    assert changes == (pytest.approx(0.0), pytest.approx(0.0), None)


def test_a_run_that_was_stopped_near_its_end_shows_where_it_ends():
    changes = changes_of(PACE, told(lambda step: 2.0 * step + 0.5 * min(step, 40), until=85))
    assert changes == changes_of(PACE, told(lambda step: 2.0 * step + 0.5 * min(step, 40)))


def test_too_few_runs_that_went_on_do_not_tell_how_far_forecasts_are_off():
    whole, stopped = (0.01,) * 3, (0.01, 0.01, None)
    assert factors([whole, whole, *[stopped] * 9], 0.05) == (None,) * 3
    assert None not in factors([whole, whole, whole, stopped], 0.05)


def test_runs_that_keep_their_pace_let_forecasts_decide_early_and_those_that_do_not_do_not():
    steady = [changes_of(PACE, told(lambda step, factor=factor: factor * step)) for factor in (1.0, 1.1, 1.4, 1.9, 2.5)]
    restless = [(change, 0.0, 0.0) for change in (-0.3, 0.2, 0.0, 0.3, -0.1)]
    assert max(factors(steady, 0.05)) < 1.1
    assert factors(restless, 0.05)[0] > 1.3
    assert factors(restless, 0.05)[1] < 1.1


def test_what_all_runs_gain_on_their_way_is_allowed_for():
    faster = [(-0.2, 0.0, 0.0)] * 8
    assert factors(faster, 0.05)[0] > exp(0.2)


def test_at_most_so_many_runs_are_said_to_have_lost_that_have_not():
    rng, wrong, runs = np.random.default_rng(7), 0, 4000
    spreads = np.array([0.08, 0.04, 0.02])
    for _ in range(runs // 10):
        known = factors([tuple(row) for row in rng.normal(0.0, spreads, (6, 3))], 0.05)
        # Forecasts that are beyond the bound, 1, by just as much as is asked for.
        ends = [log(known[0]) + row.sum() for row in rng.normal(0.0, spreads, (10, 3))]
        wrong += sum(end < 0.0 for end in ends)
    assert wrong / runs < 0.06


def test_what_cannot_be_a_time_says_nothing_of_how_forecasts_change():
    late = Pace(tuple((step, 0.40 + 1e-6 * step + 0.1 * (step > 40)) for step in range(1, 61)), 0.38, 15.0)
    assert changes_of(late, TimedRun(late.timeline, 0.38))[0] == pytest.approx(0.0, abs=1e-3)
    assert changes_of(late, TimedRun(late.timeline, 0.0))[-1] is None
