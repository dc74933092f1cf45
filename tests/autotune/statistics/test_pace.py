import pytest

from autotune.statistics.pace import Pace, time_at

STEPS = tuple((step, 2.0 + 0.1 * step) for step in range(0, 101, 5))
PACE = Pace(STEPS, elapsed_s=13.0, value=11.0)


def run(seconds, until=100):
    return [(step, seconds(step)) for step in range(0, until + 1, 5)]


@pytest.mark.parametrize("factor", [0.5, 1.0, 3.0])
def test_a_steady_run_ends_when_it_is_foretold_to(factor):
    seen = run(lambda step: 2.0 + factor * 0.1 * step, until=20)
    assert PACE.end_s(seen) == pytest.approx(2.0 + factor * 11.0)


def test_a_slow_start_counts_as_it_is_and_not_for_what_is_left():
    seen = run(lambda step: 2.0 + 0.1 * step + 0.4 * min(step, 20), until=40)
    assert PACE.end_s(seen) == pytest.approx(13.0 + 8.0)


def test_steps_that_cost_more_in_every_run_are_foretold_from_the_yardstick():
    def late(step):
        return 0.1 * step + 0.3 * max(0, step - 50)

    pace = Pace(tuple(run(late)), elapsed_s=late(100), value=late(100))
    assert pace.end_s(run(lambda step: 2.0 * late(step), until=30)) == pytest.approx(2.0 * late(100))


@pytest.mark.parametrize("seen", [[], run(float, until=5), [(step + 200, float(step)) for step in range(5)]])
def test_nothing_is_foretold_from_too_few_steps_or_from_steps_the_yardstick_lacks(seen):
    assert PACE.end_s(seen) is None


def test_a_time_moves_with_the_end_and_a_rate_with_what_comes_after_the_first_step():
    assert PACE.value_at(15.0, [(0, 2.0)], is_rate=False) == 13.0
    # The yardstick's metric leaves out 2 s of 13, which may be its start: one that takes 3 s more is no part either.
    assert PACE.value_at(15.0, [(0, 5.0)], is_rate=False) == 10.0
    everything = Pace(STEPS, elapsed_s=13.0, value=13.0)
    assert everything.value_at(15.0, [(0, 5.0)], is_rate=False) == 15.0
    rate = Pace(STEPS, elapsed_s=13.0, value=100.0)
    # The yardstick takes 11 s from its first step on, and this run 20 s after a start that is longer.
    assert rate.value_at(24.0, [(0, 4.0)], is_rate=True) == pytest.approx(100.0 * 11.0 / 20.0)


def test_the_factor_of_a_step_is_that_of_the_last_look_before_it():
    pace = Pace(STEPS, 13.0, 11.0, sure=((10, 1.4), (40, 1.1)))
    assert [pace.factor(step, 1.25) for step in (5, 10, 39, 40, 90)] == [1.25, 1.4, 1.4, 1.1, 1.1]


def test_a_time_between_two_steps_is_in_proportion():
    assert time_at(STEPS, 7.5) == pytest.approx(2.75)
    assert time_at(STEPS, 101) is None


def test_a_run_and_a_yardstick_that_begin_to_tell_at_other_steps_are_compared_from_where_both_do():
    late = Pace(STEPS[4:], elapsed_s=13.0, value=11.0)
    assert late.end_s(run(lambda step: 2.0 + 0.2 * step, until=40)) == pytest.approx(2.0 + 2.0 * 11.0)
    assert PACE.end_s(run(lambda step: 2.0 + 0.2 * step, until=40)[4:]) == pytest.approx(2.0 + 2.0 * 11.0)


def test_steps_that_were_read_when_the_run_was_over_foretell_no_end_before_them():
    # A run of 0.38 s whose lines were read after 0.4 and 0.5 s.
    late = Pace(tuple((step, 0.40 + 1e-6 * step + 0.1 * (step > 40)) for step in range(1, 61)), 0.38, 15.0)
    seen = [(step, 8.0 + 1e-6 * step) for step in range(1, 31)]
    assert late.end_s(seen) == seen[-1][1]
