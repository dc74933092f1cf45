from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.execution.capping import Cap, ProgressWatch, apply_cap, make_cap, was_capped
from autotune.statistics.pace import Pace
from launchers import EndReason, Job, JobState, JobStatus, Usage
from objectives.base import Metric, Progress

TIME = Metric("wall_s", "s", kind="time")
RATE = Metric("rate", "1/s", "maximize", "rate")
OTHER = Metric("energy", "J")

# The reference starts for 5 s, and takes 2 s for each of 50 steps.
STEPS = tuple((step, 5.0 + 2.0 * step) for step in range(1, 51))
PACE = Pace(STEPS, elapsed_s=106.0, value=104.0)
RATE_PACE = Pace(STEPS, elapsed_s=106.0, value=10.0)
JOB = Job(("program",), Path("/nowhere"))


def read(line):
    return Progress(int(line)) if line.isdigit() else None


def follow(limit, run):
    """Follow a run, (line, elapsed_s); return the watch, and when it said to stop."""
    now = [1000.0]
    watch = ProgressWatch(read, limit, clock=lambda: now[0])
    for line, elapsed_s in run:
        now[0] = 1000.0 + elapsed_s
        if watch(str(line)):
            return watch, elapsed_s
    return watch, None


def slowed(factor, start=1.0):
    return [(step, start * 5.0 + factor * (at - 5.0)) for step, at in STEPS]


def ended(reason, elapsed_s=0.0):
    return JobStatus(JobState.ENDED, reason, usage=Usage(elapsed_s))


@pytest.mark.parametrize("factor", [0.5, 1.0])
def test_a_run_at_the_pace_of_the_reference_is_never_stopped(factor):
    watch, stopped = follow(make_cap(TIME, 104.0, pace=PACE), slowed(factor))
    assert stopped is None
    assert watch.forecast.elapsed_s <= 106.0 + 1e-9


@given(st.floats(0.2, 5), st.floats(0.2, 5))
def test_no_run_is_stopped_that_would_have_stayed_below_the_cap(factor, start):
    # The pace is steady, so what is forecast is what would have been.
    value = 104.0 + (start - 1.0) * 5.0 + (factor - 1.0) * 100.0
    _, stopped = follow(make_cap(TIME, 120.0, pace=PACE), slowed(factor, start))
    assert stopped is None or value > 120.0


def test_a_run_twice_as_slow_is_stopped_early_and_its_end_is_foretold():
    watch, stopped = follow(make_cap(TIME, 110.0, pace=PACE), slowed(2.0))
    assert stopped < 0.2 * 206.0
    assert watch.stops
    assert watch.forecast.value == pytest.approx(204.0, rel=0.01)
    assert watch.forecast.elapsed_s == pytest.approx(206.0, rel=0.01)


def test_a_slow_start_is_not_taken_for_a_slow_pace():
    watch, stopped = follow(make_cap(TIME, 140.0, pace=PACE), slowed(1.0, start=5.0))
    assert stopped is None
    assert watch.forecast.value == pytest.approx(104.0 + 20.0)


def test_a_little_too_slow_is_not_stopped_by_its_pace():
    assert follow(make_cap(TIME, 110.0, pace=PACE), slowed(1.1))[1] is None


def test_where_it_is_known_how_far_forecasts_are_off_a_little_too_slow_is_stopped_by_its_pace():
    known = replace(PACE, sure=((20, 1.02),))
    _, stopped = follow(make_cap(TIME, 110.0, pace=known), slowed(1.1))
    # At step 20, and not before: until then the forecast has to be a quarter beyond.
    assert stopped == dict(slowed(1.1))[20]


@pytest.mark.parametrize(("factor", "stops"), [(1.0, False), (1.1, False), (2.0, True)])
def test_a_rate_falls_as_the_steps_slow_down(factor, stops):
    watch, stopped = follow(make_cap(RATE, 9.5, pace=RATE_PACE), slowed(factor))
    assert (stopped is not None) is stops
    assert watch.forecast.value == pytest.approx(10.0 / factor)


def test_the_first_tenth_of_a_run_is_not_judged():
    _, stopped = follow(make_cap(TIME, 104.0, pace=PACE), slowed(50.0)[:6])
    assert stopped is None


@pytest.mark.parametrize("limit", [None, Cap(TIME, 10.0, 10.0), make_cap(TIME, 10.0, pace=PACE)])
def test_a_program_that_tells_no_steps_is_not_stopped(limit):
    watch, stopped = follow(limit, [("hello", 10.0), ("", 1e6)])
    assert (stopped, watch.forecast, watch.timeline) == (None, None, ())


def test_a_reference_without_steps_is_no_yardstick():
    assert follow(make_cap(TIME, 10.0, pace=Pace((), 106.0, 104.0)), slowed(9.0))[1] is None


def test_steps_unknown_to_the_reference_are_not_judged():
    run = [(step + 100, at) for step, at in slowed(9.0)]
    assert follow(make_cap(TIME, 10.0, pace=PACE), run)[1] is None


def test_steps_that_the_reference_skipped_are_judged_by_their_neighbours():
    coarse = Pace(STEPS[::10] + STEPS[-1:], 106.0, 104.0)
    watch, stopped = follow(make_cap(TIME, 110.0, pace=coarse), slowed(2.0))
    assert stopped is not None
    assert watch.forecast.value == pytest.approx(204.0, rel=0.01)


def test_steps_that_repeat_or_go_backwards_are_passed_over():
    watch, _ = follow(None, [(1, 1.0), (2, 2.0), (2, 3.0), (1, 4.0), ("x", 5.0), (3, 6.0)])
    assert watch.timeline == ((1, 1.0), (2, 2.0), (3, 6.0))


@given(st.integers(1, 3000))
def test_a_long_timeline_is_thinned_and_keeps_both_ends(steps):
    timeline = follow(None, [(step, float(step)) for step in range(1, steps + 1)])[0].timeline
    assert (timeline[0], timeline[-1]) == ((1, 1.0), (steps, float(steps)))
    assert len(timeline) <= 202
    assert list(timeline) == sorted(set(timeline))
    assert len(timeline) >= min(steps, 100)


def test_a_time_is_capped_by_the_time_of_the_job():
    # Beside the time of its metric a job has had 2 s at most; this one may have a start of its own.
    assert make_cap(TIME, 10.0, overhead_s=2.0) == Cap(TIME, 10.0, 14.0)
    assert make_cap(TIME, 10.0, overhead_s=-2.0).elapsed_s == 10.0


def test_a_rate_is_capped_by_its_pace_only():
    assert make_cap(RATE, 9.0) is None
    assert make_cap(RATE, 9.0, pace=RATE_PACE).elapsed_s is None


def test_a_metric_that_says_nothing_before_the_end_has_no_cap():
    assert make_cap(OTHER, 9.0, pace=PACE) is None


@pytest.mark.parametrize("unit", ["min", "ms", ""])
def test_a_time_in_another_unit_is_not_compared_with_seconds(unit):
    assert make_cap(Metric("wall", unit, kind="time"), 10.0, overhead_s=2.0, pace=PACE) is None


@pytest.mark.parametrize(("own", "of_cap", "limit"), [(None, 10.0, 10.0), (20.0, 10.0, 10.0), (5.0, 10.0, 5.0)])
def test_the_lower_limit_holds(own, of_cap, limit):
    assert apply_cap(Job(("x",), Path(), time_limit_s=own), Cap(TIME, of_cap, of_cap)).time_limit_s == limit


@pytest.mark.parametrize("limit", [None, Cap(RATE, 10.0, pace=RATE_PACE)])
def test_without_a_cap_on_time_the_job_stays_as_it_is(limit):
    job = Job(("x",), Path(), time_limit_s=7.0)
    assert apply_cap(job, limit) is job


@pytest.mark.parametrize(
    ("own", "reason", "capped"),
    [
        (None, EndReason.TIMED_OUT, True),
        (20.0, EndReason.TIMED_OUT, True),
        (5.0, EndReason.TIMED_OUT, False),
        (None, EndReason.EXITED, False),
        (None, EndReason.CANCELLED, False),
    ],
)
def test_a_run_is_capped_if_it_was_stopped_by_the_cap_not_by_its_own_limit(own, reason, capped):
    job = Job(("x",), Path(), time_limit_s=own)
    assert was_capped(job, Cap(TIME, 10.0, 10.0), ended(reason, 10.0), ProgressWatch(read)) is capped


@pytest.mark.parametrize(("elapsed_s", "capped"), [(0.0, False), (3600.0, False), (4000.0, True), (4000.2, True)])
def test_a_run_that_the_wall_time_of_its_site_ended_before_its_cap_is_no_bound(elapsed_s, capped):
    killed = ended(EndReason.TIMED_OUT, elapsed_s)
    assert was_capped(JOB, Cap(TIME, 4000.0, 4000.0), killed, ProgressWatch(read)) is capped


@pytest.mark.parametrize(("reason", "capped"), [(EndReason.CANCELLED, True), (EndReason.EXITED, False)])
def test_a_run_that_ended_before_its_pace_could_stop_it_counts(reason, capped):
    limit = make_cap(RATE, 9.5, pace=RATE_PACE)
    watch, _ = follow(limit, slowed(2.0))
    assert was_capped(JOB, limit, ended(reason), watch) is capped


def test_without_a_cap_a_time_out_is_one():
    assert not was_capped(JOB, None, ended(EndReason.TIMED_OUT), ProgressWatch(read))
