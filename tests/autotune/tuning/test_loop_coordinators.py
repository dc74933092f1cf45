"""A coordinator that is not alone: what it does while another one has what it wanted to run."""

from contextlib import contextmanager

import pytest

from autotune.coordination.coordinators import Coordinators
from autotune.coordination.lease_record import LeaseRecord
from autotune.records.study import Purpose, Run
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.leases import MemoryLeaseBook
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import Ending
from tests.autotune.coordination.test_coordinators import Clock
from tests.autotune.tuning.test_loop import SPACE, session, url
from tests.support.fakes import PaperExecutor, bowl

# What storage has of a run whose coordinator starts its program itself.
LEFT = LeaseRecord(
    Purpose({"np": 8}, 0),
    {"folder": "/nowhere/runs/00000-1"},
    "00000-1",
    None,
    "2026-01-01T00:00:00+00:00",
    None,
    0,
    1,
    "",
).to_dict()


class Waiting(PaperExecutor):
    """Counts the waits for which nothing was in flight, and lets time pass in each."""

    idle = 0

    def __init__(self, clock, patience, then):
        super().__init__(bowl)
        self._clock, self._patience, self._then = clock, patience, then

    def wait(self, timeout_s):
        ended = super().wait(timeout_s)
        self._clock.now += 1.0
        if not ended:
            self.idle += 1
            if self.idle == self._patience:
                self._then()
        return ended


@pytest.mark.parametrize("died", [False, True])
def test_what_another_one_is_just_running_is_waited_for_and_not_the_end(tmp_path, died):
    clock = Clock()
    book = MemoryLeaseBook("a:1:x", clock)
    other = Coordinators(book, "a:1:x", alone=False, clock=clock)
    other.join()
    executor = Waiting(clock, 20, lambda: clock.__setattr__("now", 400.0) if died else other.leave())
    store, manager, runner = session(tmp_path, executor, trials=4)
    manager.registry.coordinators = Coordinators(book.seen_by("b:1:x"), "b:1:x", alone=False, clock=clock)
    manager.registry.coordinators.join()
    made_elsewhere = []

    def stored(trial):
        # Between this one's decision and its start the other one has made that very run, and started the next.
        if not made_elsewhere:
            made_elsewhere.append(trial)
            other.take_all({"00000-1": LEFT})
            return 1
        return 0

    manager.registry.stored = stored
    assert runner.tune() is Ending.BUDGET
    assert made_elsewhere == [0]
    assert executor.idle >= 20
    assert [trial.runs != () for trial in store.trials()] == [True] * 4


def test_what_another_one_has_proposed_and_made_meanwhile_is_not_run_again(tmp_path):
    once = {"max_runs": 1, "baseline_runs": 1, "baseline_every": 0}
    store, manager, runner = session(tmp_path, PaperExecutor(bowl), trials=6, repeats=once)
    manager.registry.coordinators = Coordinators(store.leases("b:1:x"), "b:1:x", alone=False)
    manager.registry.coordinators.join()
    Coordinators(store.leases("a:1:x"), "a:1:x", alone=False).join()
    alone, made = store.alone, []

    @contextmanager
    def held():
        with alone():
            # It has not stored yet that the trial is settled.
            if store.count_trials() == 3 and not made:
                other = StudyStore.read(url(tmp_path), "paper", read_only=False)
                (trial,) = Asker(other, ValidSetSampler(SPACE, seed=9)).ask_all(1)
                other.add_runs([Run(trial.configuration, trial.number, outcome=bowl(trial.configuration))])
                made.append(trial.number)
            yield

    store.alone = held
    assert runner.tune() is Ending.BUDGET
    assert made == [3]
    assert [len(trial.runs) for trial in store.trials()] == [1] * 6


def test_the_result_of_a_run_that_another_one_has_taken_over_is_dropped_and_others_go_on(tmp_path):
    store, manager, runner = session(tmp_path, PaperExecutor(bowl), trials=4)
    silent, other = store.leases("a:1:x"), store.leases("b:1:x")
    manager.registry.coordinators = Coordinators(silent, "a:1:x", alone=False)
    manager.registry.coordinators.join()
    add_runs, stolen = store.add_runs, []

    def stored(runs, places, holder):
        # This coordinator was silent for a while, and another one has taken it for dead.
        if runs and not stolen and runs[0].trial == 1:
            stolen.extend(places)
            assert other.take_over(places[0], "a:1:x", 0.0)
            other.release(places[0])
        return add_runs(runs, places, holder)

    store.add_runs = stored
    assert runner.tune() is Ending.BUDGET
    (said,) = (line for line in manager.display.lines if "is dropped" in line)
    assert said.startswith(f"run {stolen[0]}: its result is dropped: this process was not heard of for a while")
    assert [trial.runs != () for trial in store.trials()] == [True] * 4
