"""Runs on this machine are jobs of this process."""

import sys
from dataclasses import replace
from threading import Event

import pytest

from autotune.execution.capping import Cap
from autotune.execution.local_executor import LocalExecutor
from autotune.execution.task import Task
from launchers import STDOUT, Job, LineReader
from launchers.local import LocalLauncher
from objectives.base import FailureKind
from objectives.command import ELAPSED, CommandObjective, CommandOptions
from tests.support.processes import left_in
from tests.support.waiting import PATIENCE_S


@pytest.fixture
def executor():
    made = LocalExecutor(LocalLauncher())
    yield made
    made.cancel_all()


def task_of(folder, *argv, key=0, cap=None):
    folder.mkdir()
    return Task(key, Job(argv, folder), CommandObjective(CommandOptions(argv=list(argv))), cap=cap)


def waited(executor, count):
    ended = []
    while len(ended) < count:
        ended += executor.wait(PATIENCE_S)
    return {task.key: outcome for task, outcome in ended}


def test_runs_end_with_their_outcomes_side_by_side_if_need_be(executor, tmp_path):
    executor.submit(task_of(tmp_path / "a", "sleep", "0.2", key=1))
    executor.submit(task_of(tmp_path / "b", "false", key=2))
    executor.submit(task_of(tmp_path / "c", "nowhere-to-be-found", key=3))
    ended = waited(executor, 3)
    assert ended[1].metrics["elapsed_s"] >= 0.2
    assert ended[2].failure is FailureKind.APPLICATION_ERROR
    assert (ended[3].failure, ended[3].code) == (FailureKind.INFRASTRUCTURE_ERROR, "not-started")
    assert executor.wait(0.0) == []


def test_a_run_that_has_lost_is_stopped(executor, tmp_path):
    executor.submit(task_of(tmp_path / "a", "sleep", "1000", cap=Cap(ELAPSED, 0.1, elapsed_s=0.1)))
    assert waited(executor, 1)[0].capped


def test_nothing_is_left_of_runs_that_are_not_waited_for(executor, tmp_path):
    executor.submit(task_of(tmp_path / "a", sys.executable, "-c", "import time; time.sleep(1000)"))
    executor.leave()
    assert left_in(tmp_path / "a") == []
    assert executor.wait(0.0) == []


class Faulty(CommandObjective):
    """Has a mistake in what it reads."""

    def measure(self, output):
        raise KeyError(output.folder.name)


class FaultyProgress(CommandObjective):
    def progress_reader(self):
        return {}.__getitem__


class Exiting(CommandObjective):
    def measure(self, output):
        sys.exit(output.folder.name)


@pytest.mark.parametrize(
    ("objective", "fault"), [(Faulty, "KeyError('a')"), (FaultyProgress, "KeyError('a')"), (Exiting, "SystemExit('a')")]
)
def test_a_fault_in_an_objective_ends_its_run_and_not_the_session(executor, tmp_path, objective, fault):
    task = task_of(tmp_path / "a", "echo", "a")
    executor.submit(replace(task, objective=objective(task.objective.options)))
    outcome = waited(executor, 1)[0]
    assert outcome.failure is FailureKind.INFRASTRUCTURE_ERROR
    assert outcome.message == f"a fault in autotune or in an objective: {fault}"


def test_output_that_nothing_needs_is_written_whole_and_not_read(executor, tmp_path, monkeypatch):
    monkeypatch.setattr(LineReader, "new_lines", lambda *_, **__: pytest.fail("was read"))
    executor.submit(task_of(tmp_path / "a", sys.executable, "-c", "print('1234567\\n' * 100_000, end='')"))
    assert waited(executor, 1)[0].complete
    assert (tmp_path / "a" / STDOUT).stat().st_size == 800_000


class Slow(CommandObjective):
    """Reads the outputs of runs for as long as a test wants."""

    go = Event()

    def measure(self, output):
        assert self.go.wait(PATIENCE_S)
        return super().measure(output)


@pytest.fixture
def slow(tmp_path):
    Slow.go = Event()
    task = task_of(tmp_path / "slow", "true", key=1)
    yield replace(task, objective=Slow(task.objective.options))
    Slow.go.set()


def test_a_run_that_is_read_slowly_holds_up_no_other(executor, tmp_path, slow):
    executor.submit(slow)
    executor.submit(task_of(tmp_path / "b", "sleep", "0.3", key=2))
    assert waited(executor, 1)[2].complete
    Slow.go.set()
    assert waited(executor, 1)[1].complete


def test_the_end_of_a_session_does_not_wait_for_a_run_that_is_read_slowly(executor, tmp_path, slow):
    executor.submit(slow)
    executor.submit(task_of(tmp_path / "b", "sleep", "1000"))
    executor.leave()
    assert left_in(tmp_path / "b") == []
    Slow.go.set()
    assert executor.wait(0.5) == []
