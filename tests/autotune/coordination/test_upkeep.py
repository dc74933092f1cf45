"""Studies are deleted, renamed and reset, and the folders of their runs removed."""

import json
import os
import shutil

import pytest

from autotune.coordination.session_settings import RUNS_LOCK
from autotune.coordination.upkeep import hold_unused
from autotune.errors import BusyError, ExitCode
from autotune.scheduling.checkpoints import Checkpoints
from autotune.service.summaries import StudySummaries
from autotune.storage.stored_study import open_stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from autotune.storage.tables import stored_names
from launchers.supervisor import STATUS_FILE
from tests.support.command_line import invoke
from tests.support.command_study import CommandStudy
from tests.support.fakes import definition, small_space

OK = ExitCode.OK


@pytest.fixture
def study(tmp_path):
    """Return a study with a valid run and one that failed."""
    study = CommandStudy(tmp_path)
    study.run(1, "time 4 DONE\n")
    study.run(2, "time 3\n")
    return study


def run_on(study, *words):
    return invoke(*words, "--storage", str(study.folder / "autotune.db"))


def names(study):
    return stored_names(study.url)


def folders(study, name="mine"):
    return sorted(path.name for path in (study.folder / "autotune-runs" / name).iterdir())


def test_a_study_is_deleted_with_its_runs_its_checkpoints_and_the_folder_around_them(study):
    runs = study.folder / "autotune-runs" / "mine"
    other = CommandStudy(study.folder, "other")
    other.run(1, "time 4 DONE\n")
    Checkpoints(runs, study.store.mark).folder(1).mkdir(parents=True)
    (runs / "plan").mkdir()
    (runs / RUNS_LOCK).touch()
    ended = run_on(study, "storage", "delete", "mine", "--yes")
    assert ended.exit_code == OK, ended.output
    assert "deleted study 'mine' and 2 folders of runs" in ended.output
    assert not runs.exists()
    assert names(study) == ["other"]
    assert open_stored_study(study.url, "other").trials()[0].measured("time") == [4.0]
    assert folders(study, "other") == ["00001"]


def test_what_is_not_ours_stays_where_it_is(study):
    runs = study.folder / "autotune-runs" / "mine"
    (runs / "notes.txt").write_text("mine")
    # Of a study of the same name in another storage.
    said = json.loads((runs / "00002" / STATUS_FILE).read_text())
    (runs / "00002" / STATUS_FILE).write_text(json.dumps(said | {"elapsed_s": 99.0}))
    assert run_on(study, "storage", "delete", "mine", "--yes").exit_code == OK
    assert folders(study) == ["00002", "notes.txt"]


@pytest.mark.parametrize("way", ["merged", "copied"])
def test_folders_of_a_study_that_came_from_another_storage_stay_where_they_are(study, way):
    runs = study.folder / "autotune-runs" / "mine"
    checkpoint = Checkpoints(runs, study.store.mark).folder(1)
    checkpoint.mkdir(parents=True)
    (runs / "plan").mkdir()
    before = folders(study)
    other = study.folder / "other.db"
    if way == "merged":
        autotune_merge = ["storage", "merge", str(study.folder / "autotune.db"), "--into", str(other)]
        assert invoke(*autotune_merge).exit_code == OK
    else:
        for file in study.folder.glob("autotune.db*"):
            shutil.copy(file, other.with_name(file.name.replace("autotune", "other")))
    for command in (
        ["storage", "clean", "mine", "--yes"],
        ["storage", "rename", "mine", "theirs"],
        ["storage", "delete", "theirs", "--yes"],
    ):
        ended = invoke(*command, "--storage", str(other))
        assert ended.exit_code == OK, ended.exception
        assert command[1] == "rename" or "0 folders of runs (they belong to" in ended.output
    assert stored_names(f"sqlite:///{other}") == []
    assert folders(study) == before
    assert checkpoint.is_dir()
    assert study.read(success=["time"]).valid == 1


@pytest.mark.slow
def test_what_was_made_before_the_runs_stays_for_a_study_of_the_same_name(study):
    runs = study.folder / "autotune-runs" / "mine"
    (runs / "plan").mkdir()
    stranger = runs / "00009"
    stranger.mkdir()
    said = json.loads((runs / "00001" / STATUS_FILE).read_text())
    (stranger / STATUS_FILE).write_text(json.dumps(said | {"elapsed_s": 99.0}))
    assert run_on(study, "storage", "delete", "mine", "--yes").exit_code == OK
    assert folders(study) == ["00009", "plan"]


def test_in_a_pipe_nothing_is_deleted_or_reset_without_yes(study):
    for words in (["delete", "mine"], ["reset", "mine"], ["clean", "mine", "--all"]):
        ended = run_on(study, "storage", *words)
        assert ended.exit_code == ExitCode.USAGE
        assert "repeat the command with --yes" in " ".join(ended.output.split())
    assert len(open_stored_study(study.url, "mine").runs()) == 2


def test_a_study_that_somebody_works_on_is_left_alone(address):
    StudyStore.create(address, "mine", definition(small_space()))
    lock = StudyLock.acquire(address, "mine")
    with (
        pytest.raises(BusyError, match="'mine' is being worked on by process"),
        hold_unused(address, "mine", "deleted"),
    ):
        pass
    lock.release()
    with hold_unused(address, "mine", "deleted"), pytest.raises(BusyError):
        StudyLock.acquire(address, "mine")
    StudyLock.acquire(address, "mine").release()


def test_a_study_with_jobs_in_a_queue_is_left_alone(study):
    study.store.leases().take({"00003": ({"scheduler": "slurm"}, "slurm:17")})
    with (
        pytest.raises(BusyError, match=r"'mine' has 1 job in a queue.*`autotune cancel mine` first"),
        hold_unused(study.url, "mine", "deleted"),
    ):
        pass


def test_a_run_that_an_asking_program_has_is_no_job_in_a_queue(study):
    study.store.leases().take({"00003": ({"scheduler": ""}, "a-lease-that-a-client-has")})
    assert run_on(study, "storage", "delete", "mine", "--yes").exit_code == OK


def test_a_renamed_study_has_its_runs_under_the_new_name_and_can_be_read_again(study):
    ended = run_on(study, "storage", "rename", "mine", "yours")
    assert "--name yours" in " ".join(ended.output.split())
    assert names(study) == ["yours"]
    assert folders(study, "yours") == ["00001", "00002"]
    study.name = "yours"
    assert study.read(success=["time"]).valid == 1


def test_a_name_that_is_taken_or_is_none_is_refused(study):
    CommandStudy(study.folder, "other")
    assert "already" in str(run_on(study, "storage", "rename", "mine", "other").exception)
    assert run_on(study, "storage", "rename", "mine", "a/b").exit_code == ExitCode.USAGE
    assert "there: mine, other" in str(run_on(study, "storage", "rename", "nine", "new").exception)
    assert names(study) == ["mine", "other"]


def test_runs_of_a_renamed_study_stay_where_another_storage_has_runs_beside_them(study):
    stranger = study.folder / "autotune-runs" / "mine" / "00009"
    stranger.mkdir()
    said = json.loads((study.folder / "autotune-runs" / "mine" / "00001" / STATUS_FILE).read_text())
    (stranger / STATUS_FILE).write_text(json.dumps(said | {"elapsed_s": 99.0}))
    run_on(study, "storage", "rename", "mine", "yours")
    assert folders(study, "mine") == ["00001", "00002", "00009"]
    study.name = "yours"
    assert study.read(success=["time"]).valid == 1


def test_a_study_that_is_reset_keeps_its_name_and_its_study_file(study):
    before = study.store.definition
    assert run_on(study, "storage", "reset", "mine", "--yes").exit_code == OK
    after = open_stored_study(study.url, "mine")
    assert (after.trials(), after.runs(), after.definition) == ([], [], before)


def test_every_study_is_cleaned_and_failed_runs_keep_their_folders_unless_all_is_asked_for(study):
    study.run(3, "time 5 DONE\n")
    cleaned = json.loads(run_on(study, "storage", "clean", "--yes", "--json").output)["studies"]["mine"]
    assert (cleaned["folders"], cleaned["kept"]) == (1, 2), "the default and the failed run stay"
    run_on(study, "storage", "clean", "mine", "--all", "--yes")
    assert folders(study) == []
    assert len(open_stored_study(study.url, "mine").runs()) == 3


def test_the_service_sees_what_was_read_again_reset_and_deleted_by_others(study):
    summaries = StudySummaries(StoredStudies(study.url))

    def counts():
        summary = summaries.get("mine")
        return None if summary is None else (summary.finished, len(summary.trials), dict(summary.standings.counts))

    assert counts() == (2, 2, {"invalid result": 1})
    study.read(success=["time"])
    assert counts() == (1, 2, {})
    run_on(study, "storage", "reset", "mine", "--yes")
    assert counts() == (0, 0, {})
    run_on(study, "storage", "delete", "mine", "--yes")
    assert counts() is None
    again = CommandStudy(study.folder)
    again.run(1, "time 5 DONE\n")
    assert counts() == (1, 1, {})


@pytest.mark.slow
def test_on_a_server_a_study_is_read_again_renamed_reset_and_deleted_too(tmp_path, postgresql, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = CommandStudy(tmp_path, url=postgresql)
    study.run(1, "time 4 DONE\n")
    study.run(2, "time 3\n")
    lock = StudyLock.acquire(postgresql, "mine")
    for command in (
        ["storage", "delete", "mine", "--yes"],
        ["storage", "reset", "mine", "--yes"],
        ["storage", "rename", "mine", "new"],
    ):
        refused = invoke(*command, "--storage", postgresql).exception
        assert f"process {os.getpid()} on" in str(refused)
    lock.release()
    assert study.read(success=["time"]).valid == 1
    assert [trial.settled for trial in study.store.trials()] == [True, False]
    for command in (
        ["storage", "rename", "mine", "yours"],
        ["storage", "reset", "yours", "--yes"],
        ["storage", "delete", "yours", "--yes"],
    ):
        ended = invoke(*command, "--storage", postgresql)
        assert ended.exit_code == OK, ended.exception
    assert stored_names(postgresql) == []
    assert not (tmp_path / "autotune-runs" / "yours").exists()
