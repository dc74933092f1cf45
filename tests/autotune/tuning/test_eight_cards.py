"""Trials of one session on eight cards: which has which, and how many have one at a time."""

from dataclasses import replace

import pytest

from autotune.execution.card_pool import CardPool, MachinePool
from autotune.execution.core_pool import CorePool
from launchers import Job, Resources
from launchers.card import Card
from objectives.base import Context
from spaces import Configuration
from tests.autotune.tuning.test_loop import session
from tests.support.fakes import PaperExecutor, PaperObjective, bowl
from tests.support.training import PaperTraining, TrainingExecutor, training_session, training_study

EIGHT = tuple(Card(f"GPU-{number}", "nvidia") for number in range(8))
WANTED = Resources(cores=1, gpus=1)


class OnACard(PaperObjective):
    """The paper objective, on a card."""

    def job(self, configuration: Configuration, context: Context) -> Job:
        return replace(super().job(configuration, context), resources=WANTED)


class TrainedOnACard(PaperTraining):
    """The paper training, on a card."""

    def job(self, configuration: Configuration, context: Context) -> Job:
        return replace(super().job(configuration, context), resources=WANTED)


class Watched:
    """Reports only the oldest run, so that the others continue; counts how many had cards at a time."""

    busy = 0

    def submit(self, task):
        super().submit(task)
        held = [card for one, _ in self._ended for card in one.job.resources.cards]
        assert len(held) == len(set(held)) == len(self._ended)
        self.busy = max(self.busy, len(held))

    def wait(self, timeout_s):
        oldest, self._ended = self._ended[:1], self._ended[1:]
        return oldest


class Runs(Watched, PaperExecutor):
    """Runs of the paper objective."""


class Trainings(Watched, TrainingExecutor):
    """Trainings on paper."""


@pytest.fixture
def cards(tmp_path):
    pool = CardPool("tests", lambda: EIGHT, tmp_path)
    yield MachinePool(CorePool(range(32)), pool)
    pool.close()


def test_a_search_of_eight_workers_uses_all_cards_and_never_one_twice(tmp_path, cards):
    executor = Runs(bowl)
    _, manager, runner = session(tmp_path, executor, trials=24, workers=8)
    manager.pool, manager.factory = cards, replace(manager.factory, objective=OnACard())
    runner.tune()
    assert executor.busy == 8


@pytest.mark.parametrize("rule", ["hyperband", "asha"])
def test_successive_halving_uses_all_cards_and_never_one_twice(tmp_path, cards, rule):
    executor = Trainings()
    _, manager, runner = training_session(tmp_path, executor, training_study(40, rule=rule), workers=8, model=False)
    manager.pool, manager.factory = cards, replace(manager.factory, objective=TrainedOnACard())
    runner.tune()
    assert executor.busy == 8
    assert len(executor.trained) > 40
