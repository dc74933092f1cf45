"""Storages of older autotunes: what becomes of what they hold, whoever is killed or comes at the same time."""

import json
import logging
import subprocess
import sys

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import BusyError, StorageError
from autotune.performance.measurements.dataset import measurements
from autotune.records.outcome import Outcome
from autotune.records.study import State
from autotune.results.summary import summarise
from autotune.storage import schema
from autotune.storage.address import sqlite_path
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.study_store import StudyStore, study_names
from autotune.storage.upgrade import upgrade
from launchers import Usage
from objectives.base import FailureKind
from tests.autotune.storage.test_measurement_store import THREE
from tests.conftest import connections_closed
from tests.support import old_storages
from tests.support.fakes import definition, small_space

PAPER = definition(small_space())


def write(address):
    """Open a storage for writing as a session of another study does."""
    return StudyStore.create(address, "paper", PAPER)


def test_runs_that_trials_kept_are_in_the_log_with_nothing_made_up(address):
    old_storages.first(address)
    assert upgrade(address).before == 0
    store = StudyStore.read(address, "mine")
    found = {run.trial: run for run in store.runs()}
    assert sorted(found) == [0, 1, 2, 4]
    assert found[2].outcome == Outcome(metrics={"elapsed_s": 0.0272}, usage=Usage(0.0272, 0.004, 9646080))
    assert found[1].outcome.failure is FailureKind.APPLICATION_ERROR
    assert found[1].configuration == {"pause": 4, "flag": 1}
    assert found[2].job == old_storages.job(1)
    assert {(run.started, run.host, run.steps, len(run.outcome.conditions)) for run in found.values()} == {
        ("", "", None, 0)
    }
    assert len({run.block for run in found.values()}) == len(found)


def test_trials_of_the_first_autotune_stand_as_they_stood(address):
    old_storages.first(address)
    upgrade(address)
    trials = {trial.number: trial for trial in StudyStore.read(address, "mine").trials()}
    assert {number: (trial.state, trial.settled) for number, trial in trials.items()} == {
        0: (State.COMPLETE, True),
        1: (State.FAILED, True),
        2: (State.COMPLETE, True),
        3: (State.RUNNING, False),
        4: (State.COMPLETE, False),
    }


def test_a_verdict_without_rivals_has_its_pairs_and_what_is_sure(address):
    old_storages.first(address)
    upgrade(address)
    summary = summarise(StudyStore.read(address, "mine"))
    verdict = summary.present_verdict
    assert (verdict.winner, verdict.candidates, verdict.changes) == (2, (2,), 1)
    assert verdict.asked is None
    assert [list(pair) for pair in verdict.pairs] == old_storages.PAIRS
    assert summary.best.configuration == {"pause": 1}
    assert "too few pairs" in summary.best_text()


def test_a_verdict_on_a_trial_that_is_not_there_is_none(sqlite):
    old_storages.first(sqlite)
    verdict = json.dumps({"winner": 99, "confidence": 0.95, "pairs": [], "failures": []})
    engine = sa.create_engine(sqlite)
    with engine.begin() as connection:
        change = sa.text("UPDATE study_user_attributes SET value_json = :new WHERE key = 'verdict'")
        assert connection.execute(change, {"new": verdict}).rowcount == 1
    upgrade(sqlite)
    assert summarise(StudyStore.read(sqlite, "mine")).verdict is None


def test_an_ablation_lacks_only_what_was_not_stored(address):
    old_storages.second(address)
    upgrade(address)
    ablation = summarise(StudyStore.read(address, "mine")).ablation
    assert (ablation.baseline, ablation.combined) == (None, None)
    assert ablation.effects[0].alone == (4.343, 4.155, 4.529)


def test_records_of_a_type_without_nan_become_texts(postgresql):
    old_storages.second(postgresql)
    assert "records of PostgreSQL's type JSON" in upgrade(postgresql).done
    store = StudyStore.read(postgresql, "mine")
    assert [run.outcome.metrics["elapsed_s"] for run in store.runs()] == [0.0653, 0.0655, 0.0148]
    assert store.runs()[0].started == "2026-11-21T13:51:35+00:00"
    other = write(postgresql)
    other.add_runs(store.runs())
    assert other.runs() == store.runs()


def test_what_was_measured_then_is_there_for_the_model(address):
    old_storages.first(address)
    upgrade(address)
    found = [one for one in measurements([address]) if one.setting.source == "study mine"]
    values = {one.configuration["pause"]: one.value for one in found}
    assert values.pop(4) is None
    assert values == pytest.approx({6: 0.0778, 1: 0.0272, 2: 0.0371})


@pytest.mark.parametrize("old", [old_storages.first, old_storages.second])
def test_a_session_brings_an_older_storage_up_to_date_and_says_so(address, tmp_path, caplog, old):
    old(address)
    before = old_storages.rows(address)
    with caplog.at_level(logging.WARNING):
        write(address)
        write(address)
    (line,) = caplog.messages
    assert "brought up to date: from version 0 to" in line
    assert len(summarise(StudyStore.read(address, "mine")).trials) > 1
    if sqlite_path(address) is None:
        return
    (copy,) = old_storages.copies(tmp_path)
    assert copy == "autotune.db.v0.bak"
    assert copy in line
    assert old_storages.rows(f"sqlite:///{tmp_path / copy}") == before


@pytest.mark.parametrize("old", [old_storages.first, old_storages.second])
def test_an_older_storage_is_not_read_but_says_what_to_do(address, old):
    old(address)
    before = old_storages.rows(address)
    for use in (
        lambda: StudyStore.read(address, "mine"),
        lambda: StudyStore.read_if_ours(address, "mine"),
        lambda: study_names(address),
        lambda: MeasurementStore.read(address),
    ):
        with pytest.raises(StorageError, match=r"older autotune.*`autotune storage upgrade`") as caught:
            use()
        assert "\n" not in str(caught.value)
    assert old_storages.rows(address) == before


def test_a_storage_from_before_versions_with_nothing_old_is_read_and_gets_its_version(address, tmp_path, caplog):
    old_storages.present(address)
    assert [run.outcome.metrics for run in StudyStore.read(address, "mine").runs()] == [{"elapsed_s": 0.0654}]
    before = old_storages.rows(address)
    assert upgrade(address) is None
    assert old_storages.rows(address) == before
    write(address)
    assert version(address) == schema.VERSION
    assert (old_storages.copies(tmp_path), caplog.messages) == ([], [])


def test_the_tables_of_other_programs_stay_as_they_are(address):
    old_storages.foreign(address)
    before = old_storages.rows(address)
    assert upgrade(address) is None
    assert old_storages.rows(address) == before
    old_storages.first(address)
    upgrade(address)
    after = old_storages.rows(address)
    assert [row for row in before["trial_user_attributes"] if row not in after["trial_user_attributes"]] == []


STUDIES = st.lists(st.sampled_from(["first", "second", "foreign"]), min_size=1, max_size=4)


@settings(max_examples=12)
@given(kinds=STUDIES)
def test_to_migrate_twice_is_to_migrate_once(tmp_path_factory, kinds):
    folder = tmp_path_factory.mktemp("twice")
    url = f"sqlite:///{folder / 'autotune.db'}"
    with connections_closed():
        for number, kind in enumerate(kinds):
            getattr(old_storages, kind)(url, f"{kind} {number}")
        done = upgrade(url)
        assert (done is not None) == (set(kinds) != {"foreign"})
        once = old_storages.rows(url)
        assert upgrade(url) is None
        old_storages.without_version(url)
        assert upgrade(url) is None
    assert old_storages.rows(url) == once
    assert len(old_storages.copies(folder)) == (done is not None)


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from autotune.storage.upgrade import upgrade

@event.listens_for(Engine, "commit")
def die(connection):
    os.kill(os.getpid(), signal.SIGKILL)

upgrade(sys.argv[1])
"""


@pytest.mark.parametrize("old", [old_storages.first, old_storages.second])
def test_killed_before_its_end_it_left_everything_as_it_was(address, tmp_path, old):
    old(address)
    before = old_storages.rows(address)
    ended = subprocess.run([sys.executable, "-c", KILLED, address], check=False, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    assert old_storages.rows(address) == before
    with pytest.raises(StorageError, match="older autotune"):
        StudyStore.read(address, "mine")
    assert upgrade(address).before == 0
    assert len(summarise(StudyStore.read(address, "mine")).trials) > 1
    old_storages.copies(tmp_path)


OPENED = """
import sys
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_upgrade import PAPER
print("ready", flush=True)
sys.stdin.readline()
StudyStore.create(sys.argv[1], sys.argv[2], PAPER)
"""


def test_of_several_that_open_it_at_once_one_brings_it_up_to_date(address, tmp_path):
    old_storages.first(address)
    pipe = subprocess.PIPE
    commands = [[sys.executable, "-c", OPENED, address, name] for name in ("a", "b", "c")]
    openers = [subprocess.Popen(one, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for one in commands]
    for one in openers:
        assert one.stdout.readline() == "ready\n"
    for one in openers:
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate()[1] for one in openers]
    assert [one.returncode for one in openers] == [0, 0, 0], said
    assert sum(text.count("brought up to date") for text in said) == 1, said
    assert len(StudyStore.read(address, "mine").runs()) == 4
    assert sorted(study_names(address)) == ["a", "b", "c", "mine"]
    assert len(old_storages.copies(tmp_path)) == (sqlite_path(address) is not None)


def test_a_newer_storage_is_neither_read_nor_written(address):
    write(address)
    MeasurementStore.create(address).add(THREE)
    old_storages.set_version(address, schema.VERSION + 1)
    before = old_storages.rows(address)
    for use in (
        lambda: StudyStore.read(address, "paper"),
        lambda: StudyStore.read(address, "paper", read_only=False),
        lambda: StudyStore.read_if_ours(address, "paper"),
        lambda: study_names(address),
        lambda: MeasurementStore.read(address),
        lambda: StudyStore.create(address, "paper", PAPER),
        lambda: StudyStore.create(address, "other", PAPER),
        lambda: MeasurementStore.create(address),
        lambda: upgrade(address),
    ):
        with pytest.raises(StorageError, match=r"newer autotune.*update autotune") as caught:
            use()
        assert "\n" not in str(caught.value)
    assert old_storages.rows(address) == before
    assert version(address) == schema.VERSION + 1


def test_a_file_that_is_worked_on_is_left_alone(sqlite, tmp_path):
    old_storages.first(sqlite)
    before = old_storages.rows(sqlite)
    lock = tmp_path / "autotune.db.mine.lock"
    hold = "import pathlib, sys; from autotune.storage.study_lock import StudyLock; "
    hold += "lock = StudyLock.acquire(pathlib.Path(sys.argv[1]), 'mine'); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", hold, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        for use in (upgrade, write):
            with pytest.raises(BusyError, match=f"held by process {holder.pid} on"):
                use(sqlite)
        assert old_storages.rows(sqlite) == before
        assert old_storages.copies(tmp_path) == []
        holder.stdin.close()
    assert upgrade(sqlite).before == 0


def version(address):
    engine = sa.create_engine(address)
    with engine.connect() as connection:
        found = schema.version_of(connection)
    engine.dispose()
    return found
