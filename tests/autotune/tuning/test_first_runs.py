"""The first runs of the default where a batch system makes the runs: they wait in the queue together."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.execution.core_pool import CorePool
from autotune.execution.executor import Executor
from autotune.execution.task import WRONG_ANSWER
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.leases import MemoryLeaseBook
from autotune.storage.study_store import StudyStore
from autotune.studyfile import RepeatsSection
from autotune.tuning.loop import TuningLoop
from objectives.base import Answer, FailureKind
from objectives.ending import LOST
from tests.support.fakes import ListDisplay, definition, failed, small_space, study_file, took
from tests.support.managers import managed

SPACE = small_space()
REPEATS = RepeatsSection(max_runs=1, warm_up_runs=1, baseline_runs=3, baseline_every=0, caps=False)


class Queue(Executor):
    """Ends the newest run of those that wait, and keeps the names of all that waited together."""

    def __init__(self, most: int = 10**9) -> None:
        self.together: list[list[str]] = []
        self.waiting: list = []
        self.outcomes: dict[str, object] = {}
        self._most = most

    def submit(self, task) -> None:
        self.waiting.append(task)

    def wait(self, timeout_s):
        del timeout_s
        self.together.append([task.job.name for task in self.waiting])
        if len(self.together) > self._most:
            raise KeyboardInterrupt
        task = self.waiting.pop()
        return [(task, self.outcomes.get(task.job.name, took(1.0 + task.key)))]

    def cancel_all(self) -> None:
        self.waiting.clear()

    def leave(self) -> None:
        self.waiting.clear()

    def find_job(self, folder: Path) -> str | None:
        return f"slurm:1:{folder}" if folder.exists() else None


def session(folder, queue, *, trials=2, workers=4, leases=None, scheduler="slurm"):
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", definition(SPACE))
    manager = managed(queue, folder / "runs", pool=CorePool(range(80)), display=ListDisplay(), scheduler=scheduler)
    manager.registry.leases = leases
    manager.registry.inherit(store.runs())
    study = study_file(budget={"trials": trials, "workers": workers}, repeats=REPEATS)
    return store, TuningLoop(Asker(store, ValidSetSampler(SPACE, seed=0)), manager, study)


def names(store):
    return [Path(run.job["folder"]).name for run in store.runs()]


def test_they_wait_together_and_nothing_warms_up(tmp_path):
    queue = Queue()
    store, loop = session(tmp_path, queue)
    loop.tune()
    assert queue.together == [["00000", "00000-1", "00000-2"], ["00000", "00000-1"], ["00000"], ["00001"]]
    assert names(store) == ["00000-2", "00000-1", "00000", "00001"]
    (default, _) = store.trials()
    assert len(default.runs) == 3


def test_no_more_of_them_than_workers_and_on_this_machine_one_after_the_other(tmp_path):
    for folder, workers, scheduler, together in (("a", 2, "slurm", 2), ("b", 4, "", 1)):
        (tmp_path / folder).mkdir()
        queue = Queue()
        session(tmp_path / folder, queue, workers=workers, scheduler=scheduler)[1].tune()
        assert max(map(len, queue.together)) == together
        assert ("warm-up" in queue.together[0]) is (scheduler == "")


def test_a_session_goes_on_with_those_that_an_earlier_one_left(tmp_path):
    book, first = MemoryLeaseBook(), Queue(most=1)
    store, loop = session(tmp_path, first, leases=book)
    with pytest.raises(KeyboardInterrupt):
        loop.tune()
    assert names(store) == ["00000-2"]
    # A job is gone: its run is made again, and no other loses its folder.
    book.release("00000-1")
    second = Queue()
    store, loop = session(tmp_path, second, leases=book)
    loop.tune()
    assert second.together[0] == ["00000", "00000-1"]
    assert sorted(names(store)) == ["00000", "00000-1", "00000-2", "00001"]


def test_their_answers_are_compared_although_none_was_known_when_they_started(tmp_path):
    queue = Queue()
    queue.outcomes = {
        name: replace(took(1.0), answer=Answer("energy", value, 0.1))
        for name, value in (("00000-2", 5.0), ("00000-1", 6.0), ("00000", 5.0))
    }
    store, loop = session(tmp_path, queue, trials=1)
    with pytest.raises(NothingWorkedError, match="energy is 6, the reference run's is 5"):
        loop.tune()
    assert [run.outcome.code for run in store.runs()] == ["", WRONG_ANSWER]


def test_a_default_that_cannot_be_run_is_one_fault_however_many_of_its_runs_fail(tmp_path):
    queue = Queue()
    lost = replace(failed(FailureKind.INFRASTRUCTURE_ERROR), code=LOST)
    queue.outcomes = dict.fromkeys(("00000", "00000-1", "00000-2"), lost)
    store, loop = session(tmp_path, queue, trials=2)
    loop.tune()
    assert names(store) == ["00001"]
    (tmp_path / "other").mkdir()
    broken = Queue()
    broken.outcomes = dict.fromkeys((*queue.outcomes, "00001", "00002", "00003"), lost)
    _, loop = session(tmp_path / "other", broken, trials=4)
    with pytest.raises(CannotRunHereError, match="3 trials in a row"):
        loop.tune()
