from dataclasses import replace

import pytest

from autotune.records.series import TUNING, Series
from autotune.records.study import Run, TrialRecord
from autotune.results.short_runs import finding
from autotune.statistics.standings import Standings
from autotune.studyfile.fidelity import FidelitySection
from objectives.base import Metric
from tests.support.fakes import SECONDS, took

SECTION = FidelitySection(parameter="steps", low=100, high=1000, production=100_000)
# Short and whole: the quickest start is not the quickest pace.
TIMES_S = {0: (3.0, 21.0), 1: (2.3, 14.0), 2: (5.5, 14.5), 3: (6.0,)}


def made(section=SECTION, times_s=TIMES_S):
    short = [
        Run({"a": number}, number, Series.short(100), steps=100, of=1000, outcome=took(times[0]))
        for number, times in times_s.items()
    ]
    return finding(short, Standings.of(whole(times_s), SECONDS), section)


def whole(times_s):
    return [
        TrialRecord(
            number,
            {"a": number},
            tuple(Run({"a": number}, number, TUNING, outcome=took(seconds)) for seconds in times[1:]),
            settled=True,
        )
        for number, times in times_s.items()
    ]


def test_a_study_says_who_wins_longer_runs_and_from_when_on():
    found = made()
    line, gain = found.at_production
    assert (found.lines[0].trial, line.trial) == (1, 2)
    assert gain == pytest.approx(1301 / 1004.5 - 1.0, abs=1e-3)
    assert "for steps = 100000 trial 2 is expected to be 29.5% faster, from about 1170 on" in found.sentences()[-1]


def test_what_noise_may_have_made_is_not_said():
    found = made(SECTION.model_copy(update={"production": 1200}))
    assert found.at_production is None
    assert "no other trial is surely better" in found.sentences()[-1]


@pytest.mark.parametrize("short_s", [14.6, 14.5])
def test_a_trial_whose_short_run_took_as_long_as_the_whole_one_does_not_win_longer_runs(short_s):
    # The short run had to wait: the line through both goes down, or nowhere.
    found = made(times_s={**TIMES_S, 2: (short_s, 14.5)})
    assert found.at_production is None
    assert "no other trial is surely better" in found.sentences()[-1]


def test_a_best_trial_whose_short_run_took_longer_than_the_whole_one_says_nothing_of_longer_runs():
    found = made(times_s={**TIMES_S, 1: (14.2, 14.0)})
    assert found.at_production is None
    assert found.sentences()[-1].startswith("nothing is known for steps = 100000: trial 1, the best, or all others ")
    short = made(SECTION.model_copy(update={"production": None}), {**TIMES_S, 1: (14.2, 14.0)})
    assert short.sentences()[-1].startswith("trial 1: about 100% of a whole run is start-up")


def test_a_pace_that_noise_may_have_made_does_not_win_longer_runs():
    found = made(times_s={0: (3.0, 21.0), 1: (2.3, 14.0, 14.9), 2: (13.5, 14.5, 15.4)})
    assert 0.0 < found.lines[1].pace < found.lines[0].pace / 5.0
    assert found.at_production is None


def test_trials_that_were_left_are_counted():
    found = made()
    assert (found.tried, found.left, found.without) == (4, 1, 0)
    assert found.to_dict()["lines"][0]["startup"] == pytest.approx(1.0)


def test_it_says_what_a_short_run_takes_of_a_whole_one_where_no_more_were_made():
    later = TrialRecord(4, {"a": 4}, (Run({"a": 4}, 4, TUNING, outcome=took(22.0)),), settled=True)
    trial = TrialRecord(0, {"a": 0}, (Run({"a": 0}, 0, TUNING, outcome=took(21.0)),), settled=True)
    short = [Run({"a": 0}, 0, Series.short(100), steps=100, of=1000, outcome=took(9.0))]
    said = finding(short, Standings.of([trial, later], SECONDS), SECTION).sentences()
    assert "take 43% of a whole one: 1 later trials were made whole without one" in said[1]


def told(number, startup_s, step_s):
    timeline = tuple((step, startup_s + step_s * step) for step in range(0, 1001, 50))
    outcome = replace(took(timeline[-1][1] + 0.5), timeline=timeline)
    return TrialRecord(number, {"a": number}, (Run({"a": number}, number, TUNING, outcome=outcome),), settled=True)


def test_a_run_that_tells_its_steps_shows_start_and_pace_without_a_short_one():
    found = finding([], Standings.of([told(0, 3.0, 0.018), told(1, 1.0, 0.013), told(2, 4.5, 0.010)], SECONDS), SECTION)
    made, length = found.sentences()
    assert made == "no short runs were made: the program tells its steps, and whole runs are stopped by their pace"
    assert "for steps = 100000 trial 2 is expected to be 29.5% faster, from about 1170 on" in length


UNITS = {
    "ms": (Metric("wall_s", "ms", kind="time"), lambda seconds: 1e3 * seconds),
    "steps/min": (Metric("wall_s", "steps/min", "maximize", "rate"), lambda seconds: 60.0 * 1000 / seconds),
    "ns/day": (Metric("wall_s", "ns/day", "maximize", "rate"), lambda seconds: 86_400 * 0.002 / seconds),
}
STARTS_AND_PACES_S = ((3.0, 0.018), (1.0, 0.013), (4.5, 0.010))


def in_unit(unit, left_out=lambda number, startup_s: 0.0, made=STARTS_AND_PACES_S):
    metric, of = UNITS[unit]
    trials = []
    for number, (startup_s, step_s) in enumerate(made):
        trial = told(number, startup_s, step_s)
        outcome = trial.runs[0].outcome
        part_s = outcome.usage.elapsed_s - left_out(number, startup_s)
        run = replace(trial.runs[0], outcome=replace(outcome, metrics={"wall_s": of(part_s)}))
        trials.append(replace(trial, runs=(run,)))
    return finding([], Standings.of(trials, metric), SECTION)


@pytest.mark.parametrize("unit", UNITS)
def test_start_and_pace_are_those_of_the_run_whatever_the_unit_of_its_metric(unit):
    length = in_unit(unit).sentences()[-1]
    assert length.startswith("trial 1: about 10% of a whole run is start-up")
    assert "for steps = 100000 trial 2 is expected to be 29.5% faster, from about 1170 on" in length


def test_a_rate_that_leaves_the_start_out_does_not_let_a_long_start_pass_for_a_quick_pace():
    starts_and_paces_s = ((3.0, 0.018), (1.0, 0.010), (9.0, 0.011))
    found = in_unit("ns/day", lambda number, startup_s: startup_s, starts_and_paces_s)
    assert [line.trial for line in found.lines] == [1, 2, 0]
    assert found.at_production is None
    assert found.lines[1].at(100_000)[0] / found.lines[0].at(100_000)[0] == pytest.approx(1.1, abs=0.01)


def test_nothing_is_said_of_another_length_where_the_metric_is_of_an_unknown_part_of_a_run():
    found = in_unit("ms", lambda number, startup_s: (0.0, 2.0, 5.0)[number])
    assert found.at_production is None
    assert found.sentences()[-1].startswith("nothing is known for steps = 100000")


def test_nothing_is_said_of_another_length_where_the_best_has_one_only():
    later = TrialRecord(4, {"a": 4}, (Run({"a": 4}, 4, TUNING, outcome=took(12.0)),), settled=True)
    short = [
        Run({"a": number}, number, Series.short(100), steps=100, of=1000, outcome=took(times[0]))
        for number, times in TIMES_S.items()
    ]
    found = finding(short, Standings.of([*whole(TIMES_S), later], SECONDS), SECTION)
    assert found.at_production is None
    assert found.sentences()[-1].startswith("nothing is known for steps = 100000: trial 4, the best, or all others ")
