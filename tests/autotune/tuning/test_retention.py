"""Old folders of runs are removed by the retention of a study; what somebody still needs stays."""

import json
import os
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from autotune.cli import removal
from autotune.errors import BusyError, ExitCode
from autotune.records.series import Series
from autotune.scheduling.checkpoints import Checkpoints
from autotune.storage.readable import DEFINITION
from autotune.storage.study_lock import StudyLock
from autotune.tuning.rereading import reread
from launchers.supervisor import STATUS_FILE
from tests.support.command_line import invoke
from tests.support.command_study import CommandStudy

DAY_S = 86400
OLD = ("--prune", "--older-than", "30d", "--yes")


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


def runs(study, *words):
    return invoke("runs", "mine", *words, "--storage", str(study.folder / "autotune.db"))


def folders(study):
    return sorted(path.name for path in (study.folder / "autotune-runs" / "mine").iterdir())


def keep(study, days):
    study.store.set_attribute(
        DEFINITION, replace(study.store.definition, study={"runs": {"keep_days": days}}).to_dict()
    )


ALL = ["00001", "00002", "00003", "00004", "00005"]


def test_what_is_old_goes_and_winner_and_default_stay_unless_all_is_wanted(study):
    before = study.store.runs()
    ended = runs(study, *OLD)
    assert ended.exit_code == ExitCode.OK, ended.output
    assert "2 folders of runs" in ended.output
    assert ended.output.endswith("removed; 3 folders stay\n")
    assert folders(study) == ["00001", "00004", "00005"]
    assert "0 folders of runs" in runs(study, *OLD).output, "twice is as once"
    runs(study, *OLD, "--all")
    assert folders(study) == ["00004"]
    assert study.store.runs() == before


def test_the_study_file_says_for_how_long(study):
    keep(study, 30)
    runs(study, "--prune", "--yes")
    assert folders(study) == ["00001", "00004", "00005"]
    keep(study, 10)
    runs(study, "--prune", "--yes", "--older-than", "25d")
    assert "00004" in folders(study), "what is typed counts"
    runs(study, "--prune", "--yes")
    assert folders(study) == ["00001", "00005"]


def test_without_an_age_nothing_is_removed(study):
    ended = runs(study, "--prune", "--yes", "--all")
    assert ended.exit_code == ExitCode.USAGE
    assert "keeps the folders of its runs for ever" in ended.output
    assert folders(study) == ALL


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--older-than", "30d"), ("--all",), ("--dry-run",), ("--yes",)])
def test_what_is_about_removing_needs_prune(study, words):
    ended = runs(study, *words)
    assert ended.exit_code == ExitCode.USAGE
    assert "goes with --prune" in ended.output


def test_an_age_that_is_none_is_refused(study):
    ended = runs(study, "--prune", "--older-than", "a month", "--yes")
    assert ended.exit_code == ExitCode.USAGE
    assert "'a month' is not a duration" in ended.output


def test_a_dry_run_says_how_many_and_how_large_and_removes_nothing(study):
    (study.folder / "autotune-runs" / "mine" / "00003" / "result").write_bytes(b"x" * 12345)
    said = json.loads(runs(study, "--prune", "--older-than", "30d", "--dry-run", "--json").output)
    assert said["bytes"] > 12345
    del said["bytes"]
    figures = {"folders": 2, "kept": 3, "not_removable": 0, "older_than_s": 30 * DAY_S}
    assert said == {"study": "mine", "dry_run": True, **figures}
    assert "2 folders of runs" in runs(study, "--prune", "--older-than", "30d", "--dry-run").output
    assert folders(study) == ALL


def test_nothing_goes_where_nobody_can_be_asked_or_the_user_says_no(study, monkeypatch):
    ended = runs(study, "--prune", "--older-than", "30d")
    assert ended.exit_code == ExitCode.USAGE
    assert "the same command with --yes" in " ".join(ended.output.split())
    monkeypatch.setattr(removal, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    monkeypatch.setattr(removal.typer, "confirm", lambda *_, **__: False)
    assert runs(study, "--prune", "--older-than", "30d").exit_code == 1
    assert folders(study) == ALL


def test_a_folder_that_is_another_runs_by_now_stays(study):
    status = study.folder / "autotune-runs" / "mine" / "00003" / STATUS_FILE
    status.write_text(json.dumps(json.loads(status.read_text()) | {"elapsed_s": 99.0}))
    age(status.parent, 40)
    runs(study, *OLD, "--all")
    assert folders(study) == ["00003", "00004"]


def test_a_leased_run_keeps_its_folder(study):
    folder = study.folder / "autotune-runs" / "mine" / "00003"
    study.store.leases().take({"00003": ({"job": {"folder": str(folder)}}, None)})
    runs(study, *OLD, "--all")
    assert folders(study) == ["00003", "00004"]


def test_runs_of_a_comparison_with_the_winner_stay_too(study):
    age(study.run(5, "time 2 DONE\n", Series.sweep("abc"), is_trial=False), 40)
    runs(study, *OLD)
    assert folders(study) == ["00001", "00004", "00005", "00006"]


def test_the_pairs_behind_a_decision_table_stay_too(study):
    age(study.run(3, "time 5 DONE\n", Series.cell("abc"), is_trial=False), 40)
    runs(study, *OLD)
    assert folders(study) == ["00001", "00004", "00005", "00006"]
    runs(study, *OLD, "--all")
    assert folders(study) == ["00004"]


def test_a_paused_trial_keeps_its_folders_as_long_as_it_has_a_checkpoint(study):
    paused = study.store.runs()[2]
    more = replace(paused, steps=1, of=9)
    study.store.add_runs([more])
    checkpoint = Checkpoints(study.folder / "autotune-runs" / "mine", study.store.mark).folder(2)
    checkpoint.mkdir(parents=True)
    runs(study, *OLD, "--all")
    assert "00003" in folders(study)
    checkpoint.rmdir()
    runs(study, *OLD, "--all")
    assert "00003" not in folders(study)


def test_a_study_that_somebody_works_on_or_with_queued_jobs_is_left_alone(study):
    with_lock = StudyLock.acquire(study.url, "mine")
    assert isinstance(runs(study, *OLD).exception, BusyError)
    with_lock.release()
    study.store.leases().take({"00009": ({"scheduler": "slurm"}, "slurm:17")})
    assert isinstance(runs(study, *OLD).exception, BusyError)
    assert folders(study) == ALL


def test_reading_again_says_how_many_outputs_were_removed(study):
    runs(study, *OLD)
    found = study.read(success=["time"])
    assert (found.read, found.kept, found.removed) == (3, 2, 2)
    assert "2 runs of these without a folder here (`runs --prune` and `clean` remove them)" in found.sentence()
    assert reread(study.store, study.prepared, always=True).removed == 2
