"""A pause: the runs in flight end and are stored, no other starts, and the same command continues."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.errors import ExitCode, PausedError
from autotune.execution.signals import Pause, pausable, stop_at_sigterm
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from objectives.base import FailureKind
from tests.support.awk_study import held_session
from tests.support.contests import rounds_of
from tests.support.fakes import (
    PaperExecutor,
    bowl,
    definition,
    failed,
    small_space,
    study_file,
)
from tests.support.managers import managed
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)


class Pausing(PaperExecutor):
    """Requests the pause after a number of started runs."""

    def __init__(self, pause, after, model=bowl):
        super().__init__(model)
        self._pause = pause
        self._after = after

    def submit(self, task):
        super().submit(task)
        if len(self.launched) == self._after:
            self._pause.ask()


def manager(folder, executor, pause, *, width=1, scheduler="", **more) -> RunManager:
    gate = RunGate(width, pause=pause, jobs_stay=bool(scheduler))
    return managed(executor, folder, gate=gate, scheduler=scheduler, **more)


@pytest.fixture
def studied():
    space = small_space()
    study = study_file(budget={"trials": 20, "workers": 3})
    store = StudyStore.in_memory(definition(space))
    return Asker(store, sampler_of(space, study.sampler)), study, store


@pytest.mark.parametrize("after", [1, 2, 3, 4, 9])
def test_tuning_ends_what_is_in_flight_starts_nothing_and_goes_on_later(studied, tmp_path, after):
    asker, study, store = studied
    pause = Pause()
    executor = Pausing(pause, after)
    with pytest.raises(PausedError) as caught:
        TuningLoop(asker, manager(tmp_path, executor, pause), study).tune()
    assert caught.value.exit_code is ExitCode.PAUSED == 8
    assert len(executor.launched) == len(store.runs()) == after
    assert len(store.trials()) == after, "nothing was proposed that did not run"
    rest = PaperExecutor(bowl)
    TuningLoop(asker, manager(tmp_path, rest, Pause()), study).tune()
    assert len(store.trials()) == 20
    # The default configuration runs again in each session; nothing else does.
    assert sorted(number for number, _ in rest.launched if number) == list(range(after, 20))


def rounds(studied, folder, executor, pause, **more):
    return rounds_of(studied[2], manager(folder, executor, pause, **more))


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_comparison_does_too_and_no_run_of_a_pair_is_made_twice(studied, tmp_path, after, width):
    pause = Pause()
    executor = Pausing(pause, after)
    with pytest.raises(PausedError):
        rounds(studied, tmp_path, executor, pause, width=width).run_until(6)
    assert len(executor.launched) == len(studied[2].runs()) == after
    rest = PaperExecutor(bowl)
    rounds(studied, tmp_path, rest, Pause()).run_until(6)
    assert len(rest.launched) == 12 - after


def test_a_comparison_whose_last_run_is_in_flight_is_done(studied, tmp_path):
    pause = Pause()
    table = rounds(studied, tmp_path, Pausing(pause, 12), pause).run_until(6)
    assert len(table.runs) == 12


def test_a_run_that_failed_for_the_machines_fault_is_not_tried_again_in_a_pause(studied, tmp_path):
    pause = Pause()
    executor = Pausing(pause, 3, lambda _: failed(FailureKind.INFRASTRUCTURE_ERROR))
    with pytest.raises(PausedError):
        rounds(studied, tmp_path, executor, pause, retries=9).run_until(6)
    assert len(executor.launched) == 3
    assert studied[2].runs() == []


def test_jobs_of_a_batch_system_are_not_waited_for(studied, tmp_path):
    asker, study, _ = studied
    pause = Pause()
    executor = PaperExecutor(bowl)

    def queued(timeout_s):
        pause.ask()
        return []

    executor.wait = queued
    with pytest.raises(PausedError, match="the jobs stay in the queue"):
        TuningLoop(asker, manager(tmp_path, executor, pause, scheduler="slurm"), study).tune()
    assert len(executor.launched) == 1


def test_who_waits_for_their_turn_pauses_at_once_and_others_do_not():
    pause = Pause()
    with pytest.raises(PausedError, match="no run is in flight"), pause.waiting():
        pause.ask()
    pause.ask()
    with pytest.raises(PausedError), pause.waiting():
        pytest.fail("there is no need to wait")


def test_the_signal_asks_and_is_what_it_was_afterwards():
    before = signal.getsignal(signal.SIGUSR1)
    with pausable() as pause:
        assert not pause.asked
        os.kill(os.getpid(), signal.SIGUSR1)
        assert pause.asked
        os.kill(os.getpid(), signal.SIGUSR1)
    assert signal.getsignal(signal.SIGUSR1) is before


def test_cleaning_up_is_not_interrupted_by_who_asks_again():
    before = signal.getsignal(signal.SIGTERM)
    now = 0.0
    try:
        stop_at_sigterm(lambda: now)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        now = 60.0
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


LOST = """
import os, signal, sys, time
from autotune.execution.signals import Pause, pausable, stop_at_sigterm
class Freed:
    def __del__(self):
        os.kill(os.getpid(), signal.Signals[sys.argv[1]])
        sum(range(10))
stop_at_sigterm()
with pausable() as pause:
    try:
        with pause.waiting():
            Freed()
            print("lost")
            time.sleep(60)
    except BaseException as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("number", "raised"),
    [("SIGTERM", "KeyboardInterrupt"), ("SIGINT", "KeyboardInterrupt"), ("SIGUSR1", "PausedError")],
)
def test_a_signal_that_comes_while_python_frees_an_object_is_not_lost(number, raised):
    ended = subprocess.run(
        [sys.executable, "-c", LOST, number], capture_output=True, text=True, timeout=600, check=True
    )
    assert ended.stdout.split() == ["lost", raised]
    assert ended.stderr == ""


@pytest.mark.full
def test_a_session_is_paused_by_a_signal_and_the_same_command_goes_on(tmp_path):
    with held_session(tmp_path, "--trials", "100") as session:
        session.send_signal(signal.SIGUSR1)
        (tmp_path / "hold").unlink()
        said = session.stderr.read()
        assert session.wait() == ExitCode.PAUSED
    assert "autotune: paused: every finished run is stored, no run is in flight; the same command resumes\n" in said
    runs = json.loads(autotune(tmp_path, "trials", "mine", "--runs", "--json").stdout)
    finished = json.loads(autotune(tmp_path, "best", "mine", "--json").stdout)["trials"]
    assert f"{finished} of at most 100 trials are finished" in said
    assert all(run["outcome"]["failure"] is None for run in runs), "those in flight ended by themselves"
    done = {run["trial"] for run in runs}
    ended = autotune(tmp_path, "study", "./mine.toml", "--verbose", "--trials", f"{len(done) + 1}")
    assert ended.returncode == 0, ended.stderr
    assert {int(number) for number in re.findall(r"^trial (\d+):", ended.stderr, re.MULTILINE)} == {len(done)}


@pytest.mark.full
def test_a_session_that_waits_for_another_is_paused_at_once(tmp_path):
    with held_session(tmp_path, "--trials", "100") as session:
        for more in ((), ("--storage", "other.db")):  # for the study, and for the cores
            words = ("study", "./mine.toml", "--wait", "--status", "status.json", *more)
            with subprocess.Popen(
                [sys.executable, "-m", "autotune", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
            ) as second:
                waits = next(line for line in second.stderr if "waiting" in line)
                status = json.loads((tmp_path / "status.json").read_text())
                assert (status["phase"], status["pid"]) == ("waiting", second.pid)
                assert waits.startswith(status["message"])
                second.send_signal(signal.SIGUSR1)
                assert second.wait() == ExitCode.PAUSED
        assert session.poll() is None
        session.send_signal(signal.SIGTERM)
        session.stderr.read()
        assert session.wait() == ExitCode.INTERRUPTED
