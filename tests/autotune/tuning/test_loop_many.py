"""Many runs at a time: what ends at one moment, what is stored when, and what a person sees of it."""

from dataclasses import replace

import pytest

from autotune.execution.core_pool import CorePool
from autotune.records.study import State
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from tests.autotune.tuning.test_loop import session
from tests.support.fakes import ListDisplay, PaperExecutor, bowl, failed, took


class Gathering(PaperExecutor):
    """Keeps what ended back until `together` runs have, and then tells of `at_once` of them with each call."""

    def __init__(self, model, together, at_once):
        super().__init__(model)
        self._together, self._at_once = together, at_once
        self._told = []

    def wait(self, timeout_s):
        if self._told or len(self._ended) >= self._together or len(self.launched) < 2:
            self._told += super().wait(timeout_s)
        told, self._told = self._told[: self._at_once], self._told[self._at_once :]
        return told


def mostly(configuration):
    return failed(FailureKind.OUT_OF_MEMORY) if "blas" in configuration else bowl(configuration)


def four_at_once(folder, at_once):
    folder.mkdir()
    display = ListDisplay()
    executor = Gathering(mostly, together=8, at_once=at_once)
    store, manager, runner = session(folder, executor, trials=9, workers=8, display=display)
    manager.pool = CorePool(range(100))
    runner.tune()
    return store, display.lines


def test_runs_that_end_at_one_moment_settle_as_one_after_the_other(tmp_path):
    (one, said), (other, said_too) = four_at_once(tmp_path / "one", 1), four_at_once(tmp_path / "all", 8)
    assert [line.replace(str(tmp_path / "all"), str(tmp_path / "one")) for line in said_too] == said
    assert [(t.number, t.configuration, t.state, t.settled) for t in one.trials()] == [
        (t.number, t.configuration, t.state, t.settled) for t in other.trials()
    ]
    assert [run.outcome for run in one.runs()] == [run.outcome for run in other.runs()]
    assert {trial.state for trial in one.trials()} == {State.COMPLETE, State.FAILED}


def test_killed_between_storing_and_settling_nothing_that_ended_runs_again(tmp_path, monkeypatch):
    def settle_all(store, observations):
        if len(observations) > 1:
            raise KeyboardInterrupt
        original(store, observations)

    original = StudyStore.settle_all
    monkeypatch.setattr(StudyStore, "settle_all", settle_all)
    _, manager, runner = session(tmp_path, Gathering(bowl, together=8, at_once=8), trials=9, workers=8)
    manager.pool = CorePool(range(100))
    with pytest.raises(KeyboardInterrupt):
        runner.tune()
    monkeypatch.undo()
    again = PaperExecutor(bowl)
    store, _, runner = session(tmp_path, again, trials=9, workers=8)
    assert len(store.runs()) == 9
    runner.tune()
    # The default once more, at most: all that ended was stored before the first was settled.
    assert [key for key, _ in again.launched] in ([], [0])
    assert all(trial.settled and trial.runs for trial in store.trials())
    assert len(store.trials()) == 9


def test_what_others_stored_counts_at_once_and_what_runs_here_is_left_alone(tmp_path):
    store, _, runner = session(tmp_path, PaperExecutor(bowl), trials=4)
    runner.tune()
    best = min(store.trials(), key=lambda trial: trial.measured("wall_s")[0])
    runner.merge([replace(best, number=99, runs=(replace(best.runs[0], outcome=took(0.1)),))])
    assert runner.status().standings.incumbent.number == 99
    assert runner.status().finished == 5


def test_of_a_thousand_runs_in_flight_a_person_sees_the_first_and_how_many_more(tmp_path):
    display = ListDisplay()
    executor = Gathering(bowl, together=25, at_once=25)
    _, manager, runner = session(tmp_path, executor, trials=26, workers=25, display=display)
    manager.pool = CorePool(range(300))
    most = []
    executor.wait = lambda timeout_s: most.append(runner.status()) or Gathering.wait(executor, timeout_s)
    runner.tune()
    status = max(most, key=lambda one: len(one.running) + one.more)
    assert (len(status.running), status.more) == (20, 5)
    assert [one.number for one in status.running] == list(range(1, 21))
