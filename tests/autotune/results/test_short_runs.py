from dataclasses import replace

import pytest

from autotune.records.series import TUNING, Series
from autotune.records.study import Run, TrialRecord
from autotune.results.short_runs import finding
from autotune.statistics.standings import Standings
from autotune.studyfile.fidelity import FidelitySection
from tests.support.fakes import SECONDS, took

SECTION = FidelitySection(parameter="steps", low=100, high=1000, production=100_000)
# Short and whole: the quickest start is not the quickest pace.
TIMES_S = {0: (3.0, 21.0), 1: (2.3, 14.0), 2: (5.5, 14.5), 3: (6.0, None)}


def made(section=SECTION):
    short = [
        Run({"a": number}, number, Series.short(100), steps=100, of=1000, outcome=took(seconds))
        for number, (seconds, _) in TIMES_S.items()
    ]
    trials = []
    for number, (_, seconds) in TIMES_S.items():
        runs = () if seconds is None else (Run({"a": number}, number, TUNING, outcome=took(seconds)),)
        trials.append(TrialRecord(number, {"a": number}, runs, settled=True))
    return finding(short, Standings.of(trials, SECONDS), section)


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


def test_nothing_is_said_of_another_length_where_the_best_has_one_only():
    later = TrialRecord(4, {"a": 4}, (Run({"a": 4}, 4, TUNING, outcome=took(12.0)),), settled=True)
    trials = [
        TrialRecord(number, {"a": number}, (Run({"a": number}, number, TUNING, outcome=took(seconds)),), settled=True)
        for number, (_, seconds) in TIMES_S.items()
        if seconds is not None
    ]
    short = [
        Run({"a": number}, number, Series.short(100), steps=100, of=1000, outcome=took(seconds))
        for number, (seconds, _) in TIMES_S.items()
    ]
    found = finding(short, Standings.of([*trials, later], SECONDS), SECTION)
    assert found.at_production is None
    assert found.sentences()[-1].startswith("nothing is known for steps = 100000: trial 4, the best, or all others ")
