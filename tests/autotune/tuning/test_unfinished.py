"""A session whose time is over: what is stored, and what it says."""

import sys
from contextlib import contextmanager
from dataclasses import replace

import pytest

from autotune import studyfile
from autotune.coordination.deadline import Deadline
from autotune.coordination.places import Here, SessionResources
from autotune.coordination.session_settings import SessionSettings
from autotune.errors import CannotRunHereError, UnfinishedError
from autotune.execution import core_pool
from autotune.execution.core_pool import CorePool
from autotune.machines.this_machine import this_machine
from autotune.records.outcome import Outcome
from autotune.storage.study_store import StudyStore
from autotune.tuning.session import run_study
from launchers import Usage
from launchers.local import LocalLauncher
from tests.support.fakes import ListDisplay, PaperExecutor
from tests.support.quick_study import quick_sections

STUDY = f"""
objective = "command"
[options]
argv = ["{sys.executable}", "{{x}}"]
""" + quick_sections(trials=20, high=100)
TOOK = Outcome(metrics={"elapsed_s": 600.0}, usage=Usage(elapsed_s=600.0))


class Machine(PaperExecutor):
    """Every run takes ten minutes of a clock of its own."""

    def __init__(self):
        super().__init__(lambda configuration: TOOK)
        self.now = 0.0

    def submit(self, task):
        self._ended.append((task, TOOK))
        self.launched.append((task.key, {}))

    def wait(self, timeout_s):
        ended = super().wait(timeout_s)
        self.now += 600.0 * len(ended)
        return ended


@pytest.fixture
def settings(tmp_path, monkeypatch):
    """Return a place where runs are made by a fake machine, which the place's deadline shares its clock with."""
    machine = Machine()

    @contextmanager
    def made(*_):
        yield SessionResources(machine, CorePool([0]))

    monkeypatch.setattr(Here, "resources", made)
    (tmp_path / "mine.toml").write_text(STUDY)
    monkeypatch.setattr(core_pool, "user_folder", lambda: tmp_path)
    # No lock of a core that a real study might want.
    here = replace(this_machine(), cpus=(100_000,))
    url = f"sqlite:///{tmp_path}/autotune.db"
    deadline = Deadline(7200.0, lambda: machine.now)
    return SessionSettings(url, "mine", tmp_path / "runs", here, LocalLauncher(), deadline=deadline)


@pytest.mark.slow
def test_what_ended_is_stored_and_the_same_command_goes_on(settings, tmp_path):
    study = studyfile.load(tmp_path / "mine.toml", [])
    with pytest.raises(UnfinishedError, match=r"(?s)every finished run is stored: 11 of at most 20 trials"):
        run_study(study, settings, ListDisplay())
    assert len(StudyStore.read(settings.url, "mine").runs()) == 11
    summary = run_study(study, replace(settings, deadline=None), ListDisplay())
    assert summary.finished == 20


def test_a_time_that_holds_no_run_is_an_error_and_not_to_be_tried_again(settings, tmp_path):
    study = studyfile.load(tmp_path / "mine.toml", ["budget.run_time_limit_s=9000"])
    with pytest.raises(CannotRunHereError, match="longer allocation"):
        run_study(study, settings, ListDisplay())
