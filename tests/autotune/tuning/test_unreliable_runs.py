"""Trials that were measured at another pace of the machine run again, and the winner is the best at the present one."""

from dataclasses import replace

import numpy as np
import pytest

from autotune.comparison.confirm import confirm
from autotune.comparison.findings import standings_of
from autotune.execution.core_pool import CorePool
from autotune.records.outcome import ANOTHER_PACE, DISTURBED
from autotune.records.series import TUNING, WARM_UP, Series, SeriesKind
from autotune.records.study import Run
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.readable_study import VERDICT
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from autotune.tuning.retry import describe_reopened
from autotune.tuning.unreliable_runs import find_unreliable, set_unreliable_aside
from objectives.base import FailureKind, Metric
from spaces import Integer, Space
from tests.support.fakes import SECONDS, ListDisplay, definition, failed, took
from tests.support.managers import managed
from tests.support.simulated import SimulatedExecutor, objective, study_file

SPACE = Space([Integer.range("threads", 1, 6, default=1)])
DEFAULT = SPACE.default()


class Machine(SimulatedExecutor):
    """While it is `slow`, another number of threads is the best one, and the default takes 2.4 times as long."""

    def __init__(self):
        super().__init__(self._seconds, 0)
        self.slow = True

    def _seconds(self, configuration, rng: np.random.Generator):
        threads = configuration["threads"]
        away = abs(threads - (2 if self.slow else 5))
        seconds = 10.0 if threads == 1 else 6.0 + away
        return seconds * (2.4 if self.slow else 1.0) * np.exp(0.01 * rng.standard_normal())


class Study:
    """Sessions of a study in a file, with simulated runs."""

    def __init__(self, folder):
        self.folder, self.machine, self.lines = folder, Machine(), []
        self.study = study_file(trials=6)
        self.store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "simulated", definition(SPACE))

    def _manager(self):
        display = ListDisplay()
        self.lines = display.lines
        folder = self.folder / "runs"
        return managed(self.machine, folder, objective=objective(), pool=CorePool(range(1)), display=display)

    def tune(self):
        asker = Asker(self.store, ValidSetSampler(SPACE, seed=0))
        TuningLoop(asker, self._manager(), self.study, self.machine.clock).tune()

    def confirm(self):
        return confirm(self.store, self._manager(), self.study)

    def standings(self):
        return standings_of(self.store, "median")

    def best(self):
        return self.standings().ranking[0].configuration["threads"]

    def set_aside(self):
        said = []
        return set_unreliable_aside(self.store, said.append), " ".join(said)


@pytest.fixture
def study(tmp_path):
    return Study(tmp_path)


def test_what_was_tuned_on_a_slower_machine_is_tuned_again_and_another_configuration_wins(study):
    study.tune()
    assert study.best() == 2
    study.machine.slow = False
    doubted = study.confirm().doubts(SECONDS, "simulated", study.standings().tuned_default)[0]
    assert doubted.startswith("the machine was 2.4 times slower while tuning")
    assert "--tune-again" in doubted

    begun, said = study.set_aside()
    assert begun
    assert said.startswith("6 of 6 trials run again, about ")
    assert said.endswith("of runs: the machine was 2.4 times slower than it is now")
    assert study.store.attribute(VERDICT) is None
    aside = [run for run in study.store.runs() if run.series.kind is SeriesKind.ASIDE]
    assert {run.outcome.code for run in aside} == {ANOTHER_PACE}
    # The candidates competed on the machine as it is now.
    assert {run.series.before.kind for run in aside} == {SeriesKind.TUNING}
    why = describe_reopened(study.store.trials(), study.store.runs(), ())
    assert why[0] == "trial 0: was measured when the machine was slower or faster, runs again"

    study.tune()
    assert study.best() == 5
    verdict = study.confirm()
    winner = study.standings().trials[verdict.winner]
    assert winner.configuration["threads"] == 5
    assert verdict.doubts(SECONDS, "simulated", study.standings().tuned_default) == []
    assert study.set_aside() == (
        False,
        "no trial runs again: the machine was as fast as now, and no run that counts was disturbed",
    )


def test_a_session_that_was_ended_while_it_tuned_again_loses_nothing(study):
    study.tune()
    study.machine.slow = False
    study.confirm()
    study.set_aside()
    study.study = study.study.model_copy(update={"budget": study.study.budget.model_copy(update={"timeout_s": 60.0})})
    study.tune()
    made = [trial.number for trial in study.store.trials() if trial.runs]
    assert 0 < len(made) < 6
    # Runs at the present pace stay; the others are still to be made.
    assert study.set_aside()[0] is False
    study.study = study_file(trials=6)
    study.tune()
    assert study.best() == 5


def run(trial, seconds, *, block=0, series=TUNING, **more):
    outcome = more.pop("outcome", None) or took(seconds)
    configuration = DEFAULT if trial == 0 else {"threads": trial + 1}
    return Run(configuration, trial, series, 0, block, outcome=replace(outcome, **more))


def found(*runs, metric=SECONDS):
    return find_unreliable(dict(enumerate(runs)), DEFAULT, metric)


VERDICT_RUNS = tuple(run(0, seconds, series=Series.verdict(3)) for seconds in (10.0, 10.1, 9.9, 10.0))
SLOW = tuple(run(0, seconds) for seconds in (24.0, 24.2, 23.9))


def test_only_the_stretches_of_another_pace_are_in_doubt():
    quiet = (run(0, 10.0, block=1), run(2, 9.0, block=1))
    doubted = found(*SLOW, run(1, 20.0), *quiet, *VERDICT_RUNS)
    assert sorted(doubted) == [0, 1, 2, 3]
    assert doubted[3].message.startswith("the machine was 2.4 times slower than it is now")


def test_a_comparison_of_another_pace_than_that_of_a_later_tuning_is_in_doubt():
    now = tuple(run(0, 24.0, block=1) for _ in range(3))
    assert sorted(found(*VERDICT_RUNS, *now)) == [0, 1, 2, 3]


def test_what_was_set_aside_says_nothing_of_the_runs_that_were_made_instead():
    was = [run(0, 24.0 + place / 10) for place in range(8)]
    aside = [replace(one, series=TUNING.aside, outcome=one.outcome.set_aside(ANOTHER_PACE, "")) for one in was]
    assert not found(*aside, run(0, 10.0), run(0, 10.1), run(1, 9.0), *VERDICT_RUNS)


def test_another_node_that_was_chosen_is_no_other_time():
    a, b = ({"job": {"resources": {"hosts": [name]}}} for name in "ab")
    slow_node = [replace(run(0, seconds), **a) for seconds in (24.0, 24.2, 23.9)]
    other_node = [replace(run(0, seconds, block=1), **b) for seconds in (10.0, 10.1, 9.9)]
    assert not found(*slow_node, replace(run(1, 20.0), **a), *other_node)
    now = [replace(run(0, seconds, block=2), **a) for seconds in (10.0, 10.1, 9.9)]
    assert sorted(found(*slow_node, *other_node, *now)) == [0, 1, 2]


def test_runs_that_others_disturbed_are_in_doubt_and_tell_no_pace():
    disturbed = {"conditions": {"taken_share": 0.5, "others_share": 0.6}}
    doubted = found(run(0, 10.0), run(0, 20.0, block=1, **disturbed), run(1, 9.0, block=1), *VERDICT_RUNS)
    assert {key: doubt.code for key, doubt in doubted.items()} == {1: DISTURBED}
    assert "others took 50% of its time" in doubted[1].message


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param((*SLOW, run(1, 20.0)), id="its present pace is unknown"),
        pytest.param((run(0, 10.5), run(1, 20.0), *VERDICT_RUNS), id="within the noise"),
        pytest.param((run(0, 24.0, series=WARM_UP), *VERDICT_RUNS), id="a warm-up"),
        pytest.param(
            (*VERDICT_RUNS, run(0, 24.0, outcome=failed(FailureKind.INVALID_RESULT))), id="its failure says the same"
        ),
    ],
)
def test_nothing_is_in_doubt(runs):
    assert not found(*runs)


def test_what_does_not_depend_on_time_is_never_in_doubt():
    quality = Metric("wall_s", "", "maximize")
    assert not found(*SLOW, *VERDICT_RUNS, metric=quality)


def test_a_study_of_a_quality_says_why_nothing_is_made_again(tmp_path):
    quality = replace(definition(SPACE), metrics=(Metric("val_auc", "", "maximize"),))
    store, said = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "simulated", quality), []
    assert not set_unreliable_aside(store, said.append)
    assert said == ["no trial runs again: val_auc does not depend on the speed"]
