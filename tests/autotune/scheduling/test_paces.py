"""The pace of a run in flight, and when it may count as lost."""

from dataclasses import replace
from math import inf

import pytest

from autotune.execution.capping import USUAL
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.scheduling.paces import Paces
from autotune.statistics.standings import Standings
from launchers import Usage
from objectives.base import Metric
from spaces import Integer, Space

SECONDS = Metric("wall_s", "s", kind="time")
SPACE = Space([Integer.range("a", 0, 2, default=0), Integer.range("b", 0, 2, default=0)])


def whole(seconds):
    timeline = tuple((step, seconds * step / 100) for step in range(101))
    return Outcome(metrics={"wall_s": seconds}, timeline=timeline, usage=Usage(elapsed_s=seconds))


def stopped(seconds, until):
    outcome = whole(seconds)
    spent_s = seconds * until / 100
    return replace(
        outcome, metrics={}, bound=spent_s, timeline=outcome.timeline[: until + 1], usage=Usage(elapsed_s=spent_s)
    )


def trial(number, a, b, *outcomes):
    runs = tuple(Run({}, number, outcome=outcome) for outcome in outcomes)
    return TrialRecord(number, {"a": a, "b": b}, runs, settled=bool(runs))


def sure(a, b, *others, space=SPACE):
    """Return the factors for a new trial, beside four that ran to their ends with a and b of 0 and 1; the best is 1."""
    seconds = {0: (0, 0, 20.0), 1: (1, 0, 10.0), 2: (1, 1, 15.0), 3: (0, 1, 18.0)}
    known = [*(trial(number, *values, whole(took_s)) for number, (*values, took_s) in seconds.items()), *others]
    new = trial(9, a, b)
    standings = Standings.of([*known, new], SECONDS)
    return [factor for _, factor in Paces(space).of(new, standings.trials[1], standings, 0.05).sure]


def test_where_runs_keep_their_pace_forecasts_decide_before_they_are_far_off():
    before, *looks = sure(0, 1)
    assert (before, max(looks) < 1.1) == (USUAL, True)


def test_the_first_run_with_a_value_is_not_judged_by_its_start():
    factors = sure(0, 2)
    assert factors == [inf, inf, inf, USUAL]  # before the first look, and at each of three


def test_a_run_that_was_stopped_late_shows_what_its_values_do_and_one_that_was_stopped_early_does_not():
    assert max(sure(0, 2, trial(4, 1, 2, stopped(40.0, until=45)))[1:]) < 1.1
    assert sure(0, 2, trial(4, 1, 2, stopped(40.0, until=15)))[0] == inf


def test_where_runs_differ_in_how_their_pace_changes_forecasts_have_to_be_farther_off():
    def changing(number, b, factor):
        outcome = whole(15.0)
        timeline = tuple((step, at_s * (factor if step < 20 else 1.0)) for step, at_s in outcome.timeline)
        return trial(number, 1, b, replace(outcome, timeline=timeline))

    assert min(sure(0, 1, changing(4, 0, 0.7), changing(5, 1, 0.9))[:2]) > USUAL


def test_without_a_space_nothing_is_learnt():
    assert sure(0, 1, space=None) == []


def pace_beside(*known):
    new = trial(9, 0, 0)
    standings = Standings.of([*known, new], SECONDS)
    return Paces(SPACE).of(new, standings.trials[0], standings, 0.05)


def test_two_runs_that_agree_in_their_steps_may_do_so_by_chance():
    two = trial(0, 0, 0, whole(20.0)), trial(1, 1, 0, whole(10.0))
    assert pace_beside(two[0]) is None
    assert pace_beside(*two) is None
    assert pace_beside(*two, trial(2, 1, 1, whole(15.0))) is not None


def test_the_yardstick_tells_nothing_of_how_far_forecasts_of_others_are_off():
    three = trial(0, 0, 0, whole(20.0)), trial(1, 1, 0, whole(10.0)), trial(2, 0, 1, whole(15.0))
    assert {factor for _, factor in pace_beside(*three).sure} == {USUAL}
    assert max(factor for _, factor in pace_beside(*three, trial(3, 1, 1, whole(12.0))).sure[1:]) < USUAL


def part_of(share):
    """Return a run whose metric is of that share of it."""
    return [
        trial(number, number % 2, number // 2, replace(run, metrics={"wall_s": share * run.usage.elapsed_s}))
        for number, run in enumerate(map(whole, (20.0, 10.0, 15.0, 18.0)))
    ]


def test_what_is_off_of_a_run_is_more_of_a_metric_that_is_a_part_of_it():
    of_all, of_half = ([factor - 1.0 for _, factor in pace_beside(*part_of(share)).sure][1:] for share in (1.0, 0.5))
    assert of_half == pytest.approx([2.0 * one for one in of_all])


def test_a_pace_in_seconds_says_nothing_of_a_time_in_minutes():
    metric = replace(SECONDS, unit="min")
    known, new = [trial(number, 0, 0, whole(20.0)) for number in range(3)], trial(9, 0, 0)

    def pace_in(unit):
        return Paces(SPACE).of(new, known[0], Standings.of([*known, new], unit), 0.05)

    assert pace_in(SECONDS) is not None
    assert pace_in(metric) is None
