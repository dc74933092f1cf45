"""Old folders of runs are removed by the retention of a study; what somebody still needs stays."""

import json
import os
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from autotune.cli.commands import storage as storage_command
from autotune.errors import BusyError, ExitCode
from autotune.records.series import Series
from autotune.scheduling.checkpoints import Checkpoints
from autotune.storage.readable_study import DEFINITION
from autotune.storage.study_lock import StudyLock
from autotune.tuning.rereading import reread
from launchers.supervisor import STATUS_FILE
from tests.support.command_line import invoke
from tests.support.command_study import CommandStudy

DAY_S = 86400
OLD = ("--older-than", "30d", "--yes")


def age(folder, days):
    ended = time.time() - days * DAY_S
    os.utime(folder / STATUS_FILE, (ended, ended))


@pytest.fixture
def study(tmp_path):
    """Return a study: the default, a failure, two that lost and the winner, all of forty days ago but the fourth."""
    study = CommandStudy(tmp_path)
    for x, text in enumerate(["time 4 DONE\n", "time 9\n", "time 5 DONE\n", "time 6 DONE\n", "time 2 DONE\n"], start=1):
        age(study.run(x, text), 20 if x == 4 else 40)
    return study


def clean(study, *words):
    return invoke("storage", "clean", "mine", *words, "--storage", str(study.folder / "autotune.db"))


def folders(study):
    return sorted(path.name for path in (study.folder / "autotune-runs" / "mine").iterdir())


def keep(study, days):
    study.store.set_attribute(
        DEFINITION, replace(study.store.definition, study={"runs": {"keep_days": days}}).to_dict()
    )


ALL = ["00001", "00002", "00003", "00004", "00005"]
# The third is neither the default, nor failed, nor new, nor the winner.
KEPT = ["00001", "00002", "00004", "00005"]


def test_what_is_old_goes_and_winner_and_default_stay_unless_all_is_wanted(study):
    before = study.store.runs()
    ended = clean(study, *OLD)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "1 folder of runs" in ended.output
    assert ended.output.endswith("removed; 4 folders stay\n")
    assert folders(study) == KEPT
    assert "0 folders of runs" in clean(study, *OLD).output, "twice is as once"
    clean(study, *OLD, "--all")
    assert folders(study) == ["00004"]
    assert study.store.runs() == before


def test_the_study_file_says_for_how_long(study):
    keep(study, 30)
    clean(study, "--yes")
    assert folders(study) == KEPT
    keep(study, 10)
    clean(study, "--yes", "--older-than", "25d")
    assert "00004" in folders(study), "what is typed counts"
    clean(study, "--yes")
    assert folders(study) == ["00001", "00002", "00005"]


def test_an_age_that_is_none_is_refused(study):
    ended = clean(study, "--older-than", "a month", "--yes")
    assert ended.exit_code == ExitCode.USAGE
    assert "'a month' is not a duration" in ended.output


def test_a_dry_run_says_how_many_and_how_large_and_removes_nothing(study):
    (study.folder / "autotune-runs" / "mine" / "00003" / "result").write_bytes(b"x" * 12345)
    said = json.loads(clean(study, "--older-than", "30d", "--dry-run", "--json").output)
    assert said["studies"]["mine"].pop("bytes") > 12345
    figures = {"folders": 1, "kept": 4, "not_removable": 0, "older_than_s": 30 * DAY_S}
    assert said == {"dry_run": True, "studies": {"mine": figures}}
    assert "1 folder of runs" in clean(study, "--older-than", "30d", "--dry-run").output
    assert folders(study) == ALL


def test_nothing_is_removed_if_the_user_says_no(study, monkeypatch):
    monkeypatch.setattr(storage_command, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr(storage_command.typer, "confirm", lambda *_, **__: False)
    assert clean(study, "--older-than", "30d").exit_code == 1
    assert folders(study) == ALL


def test_what_was_cleaned_is_reported_if_the_user_says_no_to_a_later_study(study, monkeypatch):
    other = CommandStudy(study.folder, "other")
    for x, text in enumerate(["time 4 DONE\n", "time 5 DONE\n", "time 2 DONE\n"], start=1):
        age(other.run(x, text), 40)
    answers = {"mine": True, "other": False}
    monkeypatch.setattr(storage_command, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr(storage_command.typer, "confirm", lambda question, **_: answers[question.split("'")[1]])
    ended = invoke("storage", "clean", "--older-than", "30d", "--json", "--storage", study.url)
    assert ended.exit_code == 1
    assert list(json.loads(ended.stdout)["studies"]) == ["mine"]
    assert "study 'other' was not cleaned" in ended.stderr


def test_a_folder_that_is_another_runs_by_now_stays(study):
    status = study.folder / "autotune-runs" / "mine" / "00003" / STATUS_FILE
    status.write_text(json.dumps(json.loads(status.read_text()) | {"elapsed_s": 99.0}))
    age(status.parent, 40)
    clean(study, *OLD, "--all")
    assert folders(study) == ["00003", "00004"]


def test_a_leased_run_keeps_its_folder(study):
    folder = study.folder / "autotune-runs" / "mine" / "00003"
    study.store.leases().take({"00003": ({"job": {"folder": str(folder)}}, None)})
    clean(study, *OLD, "--all")
    assert folders(study) == ["00003", "00004"]


def test_runs_of_a_comparison_with_the_winner_stay_too(study):
    age(study.run(5, "time 2 DONE\n", Series.sweep("abc"), is_trial=False), 40)
    clean(study, *OLD)
    assert folders(study) == [*KEPT, "00006"]


def test_the_pairs_behind_a_decision_table_stay_too(study):
    age(study.run(3, "time 5 DONE\n", Series.cell("abc"), is_trial=False), 40)
    clean(study, *OLD)
    assert folders(study) == [*KEPT, "00006"]
    clean(study, *OLD, "--all")
    assert folders(study) == ["00004"]


@pytest.mark.slow
def test_a_paused_trial_keeps_its_folders_as_long_as_it_has_a_checkpoint(study):
    paused = study.store.runs()[2]
    more = replace(paused, steps=1, of=9)
    study.store.add_runs([more])
    checkpoint = Checkpoints(study.folder / "autotune-runs" / "mine", study.store.mark).folder(2)
    checkpoint.mkdir(parents=True)
    clean(study, *OLD, "--all")
    assert "00003" in folders(study)
    checkpoint.rmdir()
    clean(study, *OLD, "--all")
    assert "00003" not in folders(study)


def test_a_study_that_somebody_works_on_is_left_alone(study):
    lock = StudyLock.acquire(study.url, "mine")
    assert isinstance(clean(study, *OLD).exception, BusyError)
    lock.release()
    assert folders(study) == ALL


def test_reading_again_says_how_many_outputs_were_removed(study):
    clean(study, *OLD)
    found = study.read(success=["time"])
    assert (found.read, found.kept, found.removed) == (4, 1, 1)
    assert "1 run of these without a folder here (`autotune storage clean` removes them)" in found.sentence()
    assert reread(study.store, study.prepared, always=True).removed == 1
