"""What more trials will cost, by those that were measured."""

import pytest

from autotune.results.estimate import estimate
from autotune.results.summary import summarise
from autotune.storage.stored_study import stored_study
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial


def measured(sqlite, seconds):
    space = small_space()
    study = StudyStore.create(sqlite, "mine", definition(space))
    for configuration, elapsed_s in zip(space.configurations(), seconds, strict=False):
        add_trial(study, space, configuration, took(elapsed_s))
    return summarise(stored_study(sqlite, "mine"))


def test_two_trials_say_nothing(sqlite):
    assert estimate(measured(sqlite, [2.0, 3.0]), 10, 1) is None


def test_as_many_trials_cost_as_much_and_workers_share_the_time(sqlite):
    summary = measured(sqlite, [2.0, 3.0, 4.0])
    alone, four = estimate(summary, 6, 1), estimate(summary, 6, 4)
    assert alone.elapsed_s.about == pytest.approx(18.0)
    assert alone.elapsed_s.low < 18.0 < alone.elapsed_s.high
    assert alone.elapsed_s.low >= 12.0, "no trial is expected to be faster than the fastest"
    assert four.elapsed_s.about == pytest.approx(18.0 / 4)
    assert four.core_s == alone.core_s, "side by side does not cost less"
    assert (alone.trials, alone.study, alone.measured) == (6, "mine", 3)
