"""From where on a run of a mix has lost, and when it is stopped."""

from dataclasses import replace
from math import sqrt

import pytest

from autotune.execution.capping import ProgressWatch
from autotune.records.outcome import Outcome
from autotune.scheduling.mix_cap import ENOUGH, HOPE
from autotune.scheduling.mix_cap import mix_cap as cap_of_configurations
from autotune.studyfile.definition import MixedInput
from objectives.base import Metric, Progress

MIX = Metric("mix", "s")
HALVES = tuple(MixedInput(name, 0.5, Metric(f"t[{name}]", "s", kind="time")) for name in "ab")


def mix_cap(metric, bound, inputs, outcomes):
    """Return the cap after enough configurations have run, all of them no better than those `outcomes`."""
    return cap_of_configurations(metric, bound, inputs, [outcomes, *[[outcomes[0]]] * (ENOUGH - 1)])


def ran(a, b, started_s=0.0):
    took = {"a": {"elapsed_s": a + started_s}, "b": {"elapsed_s": b + started_s}}
    return Outcome(metrics={"mix": sqrt(a * b), "t[a]": a, "t[b]": b}, details={"inputs": took})


def test_an_input_has_lost_only_where_the_others_could_not_make_up_for_it():
    # The best of b was 16: so it may take 16 / HOPE, and a no more than what makes 20 of both.
    limit = mix_cap(MIX, 20.0, HALVES, [ran(9.0, 40.0), ran(25.0, 16.0), Outcome(bound=1.0)])
    assert [one.hoped for one in limit.inputs] == [9.0 / HOPE, 16.0 / HOPE]
    assert limit.inputs[0].lost_after_s == pytest.approx(20.0**2 / (16.0 / HOPE))
    assert limit.inputs[1].lost_after_s == pytest.approx(20.0**2 / (9.0 / HOPE))


def test_what_a_job_takes_beside_the_time_that_is_measured_does_not_count():
    (first, _) = mix_cap(MIX, 20.0, HALVES, [ran(9.0, 16.0, started_s=3.0)]).inputs
    assert first.lost_after_s == pytest.approx(20.0**2 / (16.0 / HOPE) + 2.0 * 3.0)


def test_times_in_another_unit_are_no_time_limits():
    minutes = tuple(replace(one, target=replace(one.target, unit="min")) for one in HALVES)
    limit = mix_cap(MIX, 20.0, minutes, [ran(9.0, 40.0), ran(25.0, 16.0)])
    assert [(one.hoped, one.lost_after_s) for one in limit.inputs] == [(9.0 / HOPE, None), (16.0 / HOPE, None)]


def test_before_a_few_configurations_have_run_all_inputs_nothing_is_stopped():
    known = [[ran(9.0, 16.0), ran(9.1, 16.1)]] * (ENOUGH - 1)
    assert cap_of_configurations(MIX, 20.0, HALVES, [*known, [Outcome(bound=1.0)]]) is None
    assert cap_of_configurations(MIX, 20.0, HALVES, [*known, [ran(12.0, 18.0)]]) is not None


def test_a_rate_has_no_time_limit_and_is_hoped_to_be_higher():
    rates = tuple(MixedInput(name, 0.5, Metric(f"t[{name}]", "1/s", "maximize")) for name in "ab")
    limit = mix_cap(Metric("mix", "1/s", "maximize"), 20.0, rates, [ran(9.0, 40.0)])
    assert [(one.hoped, one.lost_after_s) for one in limit.inputs] == [(9.0 * HOPE, None), (40.0 * HOPE, None)]


def watch(limit, values):
    """Follow a run whose inputs have these values; return after how many it was stopped, 0 for never."""
    ends = iter(enumerate(values, start=1))

    def read(_):
        number, value = next(ends)
        return Progress(number, {f"t[{'abc'[number - 1]}]": value})

    follow = ProgressWatch(read, limit)
    return next((number for number in range(1, len(values) + 1) if follow("line")), 0)


@pytest.mark.parametrize(
    ("first", "stopped"), [(20.0**2 / (16.0 / HOPE) * 0.99, 0), (20.0**2 / (16.0 / HOPE) * 1.01, 1)]
)
def test_a_run_is_stopped_between_its_inputs_once_it_cannot_win(first, stopped):
    limit = mix_cap(MIX, 20.0, HALVES, [ran(9.0, 16.0)])
    assert watch(limit, [first, 1000.0]) == stopped


def test_a_run_that_has_ended_is_not_stopped():
    assert watch(mix_cap(MIX, 20.0, HALVES, [ran(9.0, 16.0)]), [9.0, 1e6]) == 0


def test_a_higher_rate_is_better():
    rates = tuple(MixedInput(name, 0.5, Metric(f"t[{name}]", "1/s", "maximize")) for name in "ab")
    limit = mix_cap(Metric("mix", "1/s", "maximize"), 20.0, rates, [ran(25.0, 16.0)])
    assert watch(limit, [19.0, 1.0]) == 1
    assert watch(limit, [21.0, 1.0]) == 0
