"""A session checks its storage and its study before it waits for cores."""

from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from autotune.coordination.session_settings import SessionSettings
from autotune.errors import BusyError, DifferentStudyError, StorageError
from autotune.execution import core_pool
from autotune.execution.core_pool import CoreClaim
from autotune.machines.this_machine import this_machine
from autotune.records.study import Run
from autotune.storage.study_store import StudyStore
from autotune.studyfile import parse
from autotune.tuning import opening, session
from autotune.tuning.session import run_study
from launchers.local import local_launcher
from tests.support.fakes import ListDisplay, definition, small_space, took

X = {"type": "integer", "values": [1, 2], "default": 1}


@pytest.fixture
def busy(tmp_path, monkeypatch):
    """Let another study hold this machine's cores."""
    locks = tmp_path / "locks"
    locks.mkdir()
    monkeypatch.setattr(core_pool, "user_folder", lambda: locks)
    claim = CoreClaim.claim(this_machine().cpus)
    yield
    claim.release()


def started(folder, word, display=None, options=None, name="mine"):
    study = parse(
        {
            "name": name,
            "objective": "command",
            "options": options or {"argv": ["echo", word]},
            "space": {"parameters": {"x": X}},
        },
        "test",
    )
    url = f"sqlite:///{folder}/a.db"
    run_study(
        study, SessionSettings(url, name, folder / "runs", this_machine(), local_launcher()), display or ListDisplay()
    )


def test_a_study_about_something_else_is_refused_before_it_waits_for_cores(tmp_path, busy, monkeypatch):
    swept = []
    monkeypatch.setattr(opening, "end_left_over", swept.append)
    with pytest.raises(BusyError, match="core 0 is in use"):
        started(tmp_path, "{x}")
    assert not (tmp_path / "a.db").exists()
    assert swept == []  # what runs there may be the runs of the study that has the cores
    store = StudyStore.create(f"sqlite:///{tmp_path}/a.db", "mine", definition(small_space()))
    store.add_runs([Run({"np": 8}, outcome=took(1.0))])
    with pytest.raises(DifferentStudyError, match="is about something else"):
        started(tmp_path, "{x}")


def test_a_file_that_is_no_storage_is_refused_before_cores_are_waited_for(tmp_path, busy):
    (tmp_path / "a.db").write_text("no storage at all " * 1000)
    with pytest.raises(StorageError, match="file is not a database"):
        started(tmp_path, "{x}")


@pytest.mark.parametrize(("ranks", "said"), [(None, False), (1, True)])
def test_how_ranks_are_started_is_said_for_programs_of_mpi_only(tmp_path, monkeypatch, ranks, said):
    display = ListDisplay()
    monkeypatch.setattr(session, "open_run_manager", lambda _: (_ for _ in ()).throw(BusyError("enough")))
    monkeypatch.setattr(core_pool, "user_folder", lambda: tmp_path)
    options = {"argv": ["echo", "{x}"]} | ({} if ranks is None else {"ranks": ranks})
    with pytest.raises(BusyError):
        started(tmp_path, "{x}", display, options)
    assert any("ranks" in line for line in display.lines) is said


def test_a_finished_study_is_looked_through_once_for_what_is_made_again(monkeypatch):
    looked = []
    study = SimpleNamespace(sampler=None)
    settings = SimpleNamespace(tune_again=True, retry_failed=False)
    prepared = SimpleNamespace(plan=SimpleNamespace(runs="launched"))
    finished = SimpleNamespace(
        store=None, study=study, settings=settings, prepared=prepared, display=ListDisplay(), read_again=False
    )
    for name in ("check_sampler", "retry_failed", "summarise", "check_anything_worked"):
        monkeypatch.setattr(session, name, MagicMock())
    monkeypatch.setattr(session, "open_study", lambda *_: nullcontext(finished))
    monkeypatch.setattr(session, "is_done", lambda *_: True)
    monkeypatch.setattr(session, "set_unreliable_aside", lambda *_: bool(looked.append("looked")))
    run_study(study, settings, finished.display)
    assert looked == ["looked"]


def test_what_an_earlier_session_left_of_discarded_folders_is_removed(tmp_path, monkeypatch):
    left = tmp_path / "runs" / ".00001-1.0123abcd.discarded"
    left.mkdir(parents=True)
    (left / "stdout").touch()
    monkeypatch.setattr(session, "open_run_manager", lambda _: (_ for _ in ()).throw(BusyError("enough")))
    monkeypatch.setattr(core_pool, "user_folder", lambda: tmp_path)
    with pytest.raises(BusyError):
        started(tmp_path, "{x}")
    assert not left.exists()


def test_a_copied_study_file_is_told_of_the_stored_study_that_it_could_continue(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "open_run_manager", lambda _: (_ for _ in ()).throw(BusyError("enough")))
    monkeypatch.setattr(core_pool, "user_folder", lambda: tmp_path)
    lines = {}
    for name, word in (("job", "{x}"), ("job", "{x}"), ("work", "{x}"), ("other", "-{x}")):
        display = ListDisplay()
        with pytest.raises(BusyError):
            started(tmp_path, word, display, name=name)
        lines[name] = [line for line in display.lines if "about the same" in line]
    assert lines == {"job": [], "other": [], "work": ["study 'job' here is about the same: --name job continues it"]}
