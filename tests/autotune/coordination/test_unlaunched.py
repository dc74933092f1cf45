import json
import os
from pathlib import Path

import pytest

from autotune.coordination.coordinators import has_ended, new_coordinator_id
from autotune.coordination.kept_results import RESULT_FILE
from autotune.coordination.unlaunched import leased_folders, sweep_unlaunched
from autotune.records.study import Purpose, Run
from autotune.storage.study_store import StudyStore
from launchers.supervisor import STATUS_FILE
from tests.support.fakes import PaperExecutor, bowl, definition, small_space, took
from tests.support.managers import managed

ENDED = {
    "state": "ended",
    "reason": "exited",
    "exit_code": 0,
    "message": "",
    "elapsed_s": 1.0,
    "cpu_s": 1.0,
    "peak_memory_bytes": 1,
}


@pytest.fixture
def of_the_dead(tmp_path):
    """Return the folder of a coordinator that was a process of this host, with one folder of a run."""
    host, _, word = new_coordinator_id().split(":")
    pid = os.spawnlp(os.P_NOWAIT, "true", "true")
    os.waitpid(pid, 0)
    folder = tmp_path / f"{host}-{pid}-{word}"
    (folder / "verdict-1-02-0").mkdir(parents=True)
    return folder


def test_a_folder_whose_run_was_never_taken_is_removed(tmp_path, of_the_dead):
    sweep_unlaunched(tmp_path, (), [])
    assert not of_the_dead.exists()


def test_a_folder_in_which_no_run_could_be_made_is_removed(tmp_path, of_the_dead):
    (of_the_dead / "verdict-1-02-0").rmdir()
    sweep_unlaunched(tmp_path, (), [])
    assert not of_the_dead.exists()


def test_the_folder_of_a_stored_run_stays(tmp_path, of_the_dead):
    folder = of_the_dead / "verdict-1-02-0"
    sweep_unlaunched(tmp_path, (), [Run({}, outcome=took(1.0), job={"folder": str(folder)})])
    assert folder.exists()


def test_the_folder_of_a_run_stays_that_somebody_has_or_may_take_over(tmp_path, of_the_dead, sqlite):
    folder = of_the_dead / "verdict-1-02-0"
    store = StudyStore.create(sqlite, "mine", definition(small_space()))
    store.leases("").take("verdict-1-02-0", {"job": {"folder": str(folder)}}, "17")
    store.leases("").take("tuner:me", {})
    sweep_unlaunched(tmp_path, leased_folders(store), [])
    assert folder.exists()


def test_a_stored_run_is_known_from_whatever_folder_its_study_goes_on(tmp_path, of_the_dead, monkeypatch):
    folder = of_the_dead / "verdict-1-02-0"
    monkeypatch.chdir(tmp_path)
    sweep_unlaunched(Path(), (), [Run({}, outcome=took(1.0), job={"folder": str(folder)})])
    assert folder.exists()


@pytest.mark.parametrize("name", [RESULT_FILE, STATUS_FILE])
def test_what_ended_stays(tmp_path, of_the_dead, name):
    file = of_the_dead / "verdict-1-02-0" / name
    file.write_text(json.dumps(ENDED))
    sweep_unlaunched(tmp_path, (), [])
    assert file.exists()


def test_a_run_that_was_given_up_leaves_a_folder_until_the_next_session(tmp_path, of_the_dead):
    manager = managed(PaperExecutor(bowl), of_the_dead)
    (run,) = manager.start_all([manager.prepare(0, Purpose({"np": 4}, 0), "00000")])
    folder = run.task.job.folder
    (folder / STATUS_FILE).write_text(json.dumps(ENDED))
    (folder / "stderr").write_text("mpirun: no such host")
    manager.give_up(run)
    assert (folder / "stderr").exists()  # for whoever wants to know why
    sweep_unlaunched(tmp_path, (), [])
    assert not folder.exists()


def test_what_a_living_coordinator_prepares_stays(tmp_path):
    folder = tmp_path / new_coordinator_id().replace(":", "-") / "00001"
    folder.mkdir(parents=True)
    sweep_unlaunched(tmp_path, (), [])
    assert folder.exists()


@pytest.mark.parametrize("name", ["plan", "00012", "other-host-12-0cba08271824", ".lock", "vm-x-0cba"])
def test_other_folders_are_no_coordinators(name):
    assert not has_ended(name)
