"""The speed-up of a trial over the default, before and after the verdict."""

import pytest

from autotune.records.study import TrialRecord
from autotune.statistics.ratio_words import ends, times
from autotune.statistics.speed_up import SpeedUp
from autotune.statistics.verdict import Verdict
from objectives.base import Metric
from tests.autotune.statistics.test_standings import RATE, SECONDS, run, stand, trial

LOSS = Metric("val_loss", "", "minimize")
ACCURACY = Metric("accuracy", "", "maximize")


def drifting(ratio, levels):
    """Return standings of a default and of trials that are `ratio` times as fast, on a machine that gets faster."""
    default = TrialRecord(0, {}, tuple(run(level, block) for block, level in enumerate(levels)), settled=True)
    trials = [trial(1 + block, ratio * level, block=block) for block, level in enumerate(levels)]
    return stand(default, *trials, metric=RATE)


def test_a_drift_of_the_machine_is_no_speed_up():
    standings = drifting(2.0, [3.5, 4.0, 16.6, 18.7])
    for number in (1, 2, 3, 4):
        assert standings.speed_up(standings.trials[number]).ratio == pytest.approx(2.0)


def test_without_a_verdict_it_only_looks_so():
    standings = stand(trial(0, 2.0), trial(1, 1.0))
    found = standings.speed_up(standings.trials[1])
    assert not found.confirmed
    assert found.text() == "looks 2x"
    assert found.words(SECONDS) == "looks 2 times as fast as the default"


def test_the_verdict_on_a_trial_is_its_speed_up():
    standings = stand(trial(0, 9.0), trial(1, 1.0), trial(2, 1.5))
    standings.verdict = Verdict(1, (1,), 1, 0.95, None, ((1.8, 1.0),) * 5 + ((1.9, 1.0),))
    assert standings.speed_up(standings.trials[1]).text() == "1.800x (1.800 to 1.900)"
    assert standings.speed_up(standings.trials[2]).text() == "looks 6x"


def test_the_default_is_itself():
    standings = stand(trial(0, 9.0), trial(1, 1.0))
    assert standings.speed_up(standings.trials[0]).text() == "1x"


@pytest.mark.parametrize(
    ("ratio", "metric", "words"),
    [
        (1.95, LOSS, "1.95 times lower in val_loss than"),
        (0.5, LOSS, "2 times higher in val_loss than"),
        (1.25, ACCURACY, "1.25 times higher in accuracy than"),
        (0.8, ACCURACY, "1.25 times lower in accuracy than"),
        (0.8, SECONDS, "0.8 times as fast as"),
    ],
)
def test_only_what_is_a_speed_is_called_one(ratio, metric, words):
    assert times(ratio, metric) == words


def test_an_interval_is_said_as_its_ratio_is():
    assert ends((0.5, 0.4, 0.8), LOSS) == "1.250 to 2.500"
    assert ends((0.5, 0.4, 0.8), SECONDS) == "0.400 to 0.800"


def test_the_words_of_a_verdict_have_its_interval():
    assert SpeedUp(1.832, (1.657, 2.025)).words(SECONDS) == ("1.832 times as fast as the default (1.657 to 2.025)")
    assert SpeedUp(0.5, (0.4, 0.8)).words(LOSS) == "2.000 times higher in val_loss than the default (1.250 to 2.500)"
