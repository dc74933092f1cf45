"""The estimated cost of more trials, from those that were measured."""

import pytest

from autotune.results.estimate import estimate
from autotune.results.summary import summarise
from autotune.storage.observation import Observation
from autotune.storage.stored_study import open_stored_study
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

LEFT = Observation(value=1.0, partial=True)


def measured(sqlite, seconds):
    """Return a study with runs that took `seconds`, None for a trial without any run."""
    space = small_space()
    study = StudyStore.create(sqlite, "mine", definition(space))
    for configuration, run_s in zip(space.configurations(), seconds, strict=False):
        outcomes = () if run_s is None else (took(run_s),)
        add_trial(study, space, configuration, *outcomes, worth=LEFT if run_s is None else None)
    return open_stored_study(sqlite, "mine")


def estimated(study, trials, workers):
    return estimate(summarise(study), trials, workers)


def test_two_trials_are_too_few_for_an_estimate(sqlite):
    assert estimated(measured(sqlite, [2.0, 3.0]), 10, 1) is None


def test_as_many_trials_cost_as_much_and_workers_share_the_time(sqlite):
    study = measured(sqlite, [2.0, 3.0, 4.0])
    alone, four = estimated(study, 6, 1), estimated(study, 6, 4)
    assert alone.elapsed_s.about == pytest.approx(18.0)
    assert alone.elapsed_s.low < 18.0 < alone.elapsed_s.high
    assert alone.elapsed_s.low >= 12.0, "no trial is expected to be faster than the fastest"
    assert four.elapsed_s.about == pytest.approx(18.0 / 4)
    assert four.core_s == alone.core_s, "side by side does not cost less"
    assert (alone.trials, alone.study, alone.measured) == (6, "mine", 3)


def test_a_trial_that_ended_without_any_run_cost_nothing_that_is_known(sqlite):
    assert estimated(measured(sqlite, [100.0] * 3 + [None]), 3, 1).measured == 3
