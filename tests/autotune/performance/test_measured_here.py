"""Measurements in the setting of the question: their intervals, and that a verdict takes precedence over them."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from autotune.performance.measured_here import MeasuredHere, value_of
from autotune.performance.measurements.dataset import measurements, study_measurements
from autotune.performance.model import PerformanceModel
from autotune.records.limit import Limit
from autotune.records.measurement import Measured
from autotune.records.study import Run, TrialRecord
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import VERDICT
from autotune.storage.study_store import StudyStore
from spaces import Integer, Space
from tests.support.fakes import SECONDS, definition, took
from tests.support.stored import add_trial

SPACE = Space([Integer.range("x", 1, 40, default=1)])
DEFAULT, LUCKY, WINNER = 1, 7, 8


def study(seconds, noise=0.0, seed=0, verdict=None):
    """Return the measurements of a study, by x; the default and the apparent best ran more often than the others."""
    rng = np.random.default_rng(seed)
    runs = {x: [value * exp(noise * rng.standard_normal())] for x, value in seconds.items()}
    for x in (DEFAULT, *sorted(runs, key=lambda x: runs[x][0])[:5]):
        runs[x] += [seconds[x] * exp(noise * rng.standard_normal()) for _ in range(3)]
    trials = [
        TrialRecord.of(x, {"x": x}, [Run({"x": x}, x, outcome=took(value)) for value in values], settled=True)
        for x, values in runs.items()
    ]
    return study_measurements("a", definition(SPACE), trials, verdict)


def here_of(rows, **changes):
    return MeasuredHere.of(SPACE, rows[0].setting, rows, **changes)


def best_of(here):
    return here.measured[here.best]


def verdict(*pairs, winner=WINNER, candidates=(LUCKY, WINNER)):
    return Verdict(winner, candidates, 1, 0.95, 0.05, pairs)


# One looks best in tuning, another one won the fresh runs.
SECONDS_OF = dict.fromkeys(range(1, 31), 10.0) | {LUCKY: 9.0, WINNER: 9.2}
SURE, UNSURE = [(10.0, 9.3)] * 6, [(10.0, 9.9), (9.9, 10.0)] * 6


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
def test_of_equally_fast_configurations_few_are_told_to_beat_the_default(noise):
    claimed = 0
    for seed in range(40):
        here = here_of(study(dict.fromkeys(range(1, 31), 10.0), noise, seed))
        claimed += any(here.gain(row).low > 1.0 for row in here.measured)
        assert not any(here.is_confirmed(row) for row in here.measured)
    # An interval of 90 % is too high in one study of twenty: more than five of forty are in 1.4 % of cases.
    assert claimed <= 5


def test_a_value_is_as_sure_as_its_study_was_noisy():
    calm, noisy = (best_of(here_of(study(SECONDS_OF, noise))) for noise in (0.0, 0.1))
    assert value_of(calm).high < 1.01 * calm.value
    assert value_of(noisy).high > 1.1 * noisy.value
    assert value_of(replace(calm, error=None)).high == pytest.approx(calm.value * exp(1.645 * 0.03 / 2.0), rel=1e-3)


def test_a_verdict_says_the_gain_and_goes_before_what_looks_better():
    here = here_of(study(SECONDS_OF, verdict=verdict(*SURE)))
    best = best_of(here)
    assert best.configuration == {"x": WINNER}
    gain = here.gain(best)
    assert (gain.value, gain.low, gain.confidence) == (pytest.approx(10.0 / 9.3), pytest.approx(10.0 / 9.3), 0.95)
    assert here.is_confirmed(best)
    assert not here.keeps_default
    assert "a verdict says that the best beats it" in here.remark


def test_a_verdict_over_another_default_or_one_that_breaks_a_limit_says_nothing():
    rows = study(SECONDS_OF, verdict=verdict(*SURE))
    assert not here_of(rows, limits=(Limit(SECONDS, 0.0, 9.5),)).is_confirmed(rows[WINNER - 1])
    other = Space([Integer.range("x", 1, 40, default=5)])
    here = MeasuredHere.of(other, rows[0].setting, rows)
    assert best_of(here).configuration == {"x": LUCKY}
    assert not any(here.is_confirmed(row) for row in here.measured)
    assert "no verdict says that the best beats it" in here.remark


def test_a_winner_that_fails_too_often_is_not_confirmed():
    fails = replace(verdict(*SURE), failures=(f"trial {WINNER}: no",) * 3)
    assert here_of(study(SECONDS_OF, verdict=fails)).keeps_default
    never = here_of(study(SECONDS_OF, verdict=replace(fails, pairs=())))
    assert never.keeps_default
    assert never.gain(best_of(never)).confidence == 0.9


@pytest.mark.parametrize("few", [True, False], ids=["listed", "timed"])
def test_where_the_verdict_finds_no_sure_gain_the_default_is_proposed(few):
    rows = study(SECONDS_OF, verdict=verdict(*UNSURE))
    shown = [row for row in rows if row.configuration["x"] in {DEFAULT, LUCKY, WINNER}] if few else rows
    found = PerformanceModel(tuple(shown)).best(SPACE, rows[0].setting, 3)
    assert found.proposals[0].configuration == found.default == {"x": DEFAULT}
    assert not found.promising
    assert [one.by_verdict for one in found.proposals] == [False, True, False]
    assert len({one.configuration["x"] for one in found.proposals}) == 3
    assert any("a verdict does not find the best sure to beat it" in line for line in found.grounds)


@pytest.mark.slow
def test_only_a_verdict_makes_a_measured_configuration_promising():
    rows = study(SECONDS_OF)
    looks = PerformanceModel(tuple(rows)).best(SPACE, rows[0].setting, 3)
    assert looks.proposals[0].configuration == {"x": LUCKY}
    assert not looks.promising
    assert not looks.proposals[0].by_verdict
    sure = PerformanceModel(tuple(study(SECONDS_OF, verdict=verdict(*SURE)))).best(SPACE, rows[0].setting, 3)
    assert sure.proposals[0].configuration == {"x": WINNER}
    assert sure.promising
    assert sure.to_dict()["proposals"][0]["by_verdict"] is True


@pytest.mark.slow
def test_the_verdict_comes_from_storage(sqlite):
    store = StudyStore.create(sqlite, "a", definition(SPACE))
    for x, seconds in ((1, 10.0), (2, 9.0)):
        add_trial(store, SPACE, {"x": x}, took(seconds))
    store.set_attribute(VERDICT, verdict(*SURE, winner=1, candidates=(1,)).to_dict())
    rows = [row for row in measurements([sqlite]) if row.setting.source == "study a"]
    assert [row.judged is not None for row in rows] == [False, True]
    assert Measured.from_dict(rows[1].to_dict()) == rows[1]
