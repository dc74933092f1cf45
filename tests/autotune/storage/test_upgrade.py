"""Storages of other versions and other programs, whoever is killed or comes at the same time."""

import subprocess
import sys
from dataclasses import replace

import pytest
import sqlalchemy as sa

from autotune.errors import StorageError
from autotune.records.study import Run
from autotune.storage import schema
from autotune.storage.address import sqlite_path
from autotune.storage.contents import contents
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.study_store import StudyStore, study_names
from autotune.storage.versions.upgrade import upgrade
from tests.autotune.storage.test_measurement_store import THREE
from tests.support import storages
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial

PAPER = definition(small_space())


def write(address):
    """Open a storage for writing as a session does."""
    return StudyStore.create(address, "paper", PAPER)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (schema.VERSION + 1, r"newer autotune \(version 5 .* knows version 4\): update autotune"),
        (
            2,
            r"before its first release \(version 2 .* knows version 4\): use another storage, --storage",
        ),
        (0, r"before its first release \(version 0 of its tables"),
    ],
)
def test_a_storage_of_another_version_is_neither_read_nor_written(address, version, said):
    write(address)
    MeasurementStore.create(address).add(THREE)
    storages.set_version(address, version)
    before = storages.rows(address)
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
        with pytest.raises(StorageError, match=said) as caught:
            use()
        assert "\n" not in str(caught.value)
    assert storages.rows(address) == before
    if version:
        assert storages.version(address) == version


def test_the_studies_of_other_programs_stay_as_they_are(address):
    storages.foreign(address)
    before = storages.rows(address)
    assert upgrade(address) is None
    assert MeasurementStore.read(address).measurements() == []
    assert storages.rows(address) == before
    write(address)
    after = storages.rows(address)
    assert {name: [row for row in rows if row not in after[name]] for name, rows in before.items() if rows} == {
        name: [] for name, rows in before.items() if rows
    }
    assert storages.version(address) == schema.VERSION


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_upgrade import PAPER

@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, *rest):
    if "INSERT INTO autotune_schema" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

StudyStore.create(sys.argv[1], "paper", PAPER)
"""


def test_killed_before_its_tables_were_complete_it_left_none(address):
    storages.foreign(address)
    before = storages.rows(address)
    ended = subprocess.run([sys.executable, "-c", KILLED, address], check=False, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    assert storages.rows(address) == before
    write(address)
    assert storages.version(address) == schema.VERSION


OPENED = """
import sys
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_upgrade import PAPER
print("ready", flush=True)
sys.stdin.readline()
StudyStore.create(sys.argv[1], sys.argv[2], PAPER)
"""


def test_of_several_that_open_it_first_at_once_none_fails(address):
    storages.foreign(address)
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
    assert sorted(study_names(address)) == ["a", "another program's", "b", "c"]
    assert storages.version(address) == schema.VERSION


def older(address):
    """Write a study of version 3, with a run that was stored twice, and a lease."""
    store = write(address)
    trial = add_trial(store, small_space(), small_space().default(), took(1.0))
    run = Run(trial.configuration, 0, outcome=took(2.0), started="then", job={"folder": "/runs/00000-1"})
    store.add_runs([run])
    store.add_runs([replace(run, started="later")])
    store.leases("gone").take("00000-2", {"a": 1}, "4711")
    storages.to_version_3(address)
    engine = sa.create_engine(address)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE autotune_runs SET record = replace(record, 'later', 'then')"))
    engine.dispose()
    return store


def test_an_older_autotunes_tables_are_brought_up_to_date(address, tmp_path):
    older(address)
    before = storages.rows(address)
    for use in (lambda: write(address), lambda: StudyStore.read(address, "paper"), lambda: study_names(address)):
        with pytest.raises(StorageError, match=r"older autotune \(version 3\): `autotune storage upgrade`, "):
            use()
    assert storages.rows(address) == before
    assert contents(address).outdated == ("autotune's tables",)
    done = upgrade(address)
    assert (done.versions, done.revisions) == ((3, 4), None)
    if sqlite_path(address) is not None:
        assert storages.copies(tmp_path) == ["autotune.db.version-3.bak"]
        assert storages.rows(f"sqlite:///{done.copy}") == before
    store = write(address)
    assert [run.outcome.metrics["wall_s"] for run in store.runs()] == [1.0, 2.0, 2.0]
    (lease,) = store.leases("").all()
    assert (lease.place, lease.holder, lease.job_id, lease.record) == ("00000-2", "gone", "4711", {"a": 1})
    store.add_runs([store.runs()[1]])
    assert len(store.runs()) == 3, "a run that was stored before is known again"
    assert upgrade(address) is None
    assert contents(address).outdated == ()


UPGRADE_KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from autotune.storage.versions.upgrade import upgrade

@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, *rest):
    if sys.argv[2] in statement:
        os.kill(os.getpid(), signal.SIGKILL)

upgrade(sys.argv[1])
"""


@pytest.mark.parametrize("last", ["DROP TABLE autotune_leases_3", "UPDATE alembic_version"])
def test_killed_while_it_brings_tables_up_to_date_they_are_as_they_were(address, last):
    older(address)
    storages.set_revision(address, "v3.0.0.d")
    before = storages.rows(address)
    command = [sys.executable, "-c", UPGRADE_KILLED, address, last]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    if sqlite_path(address) is not None or "autotune" in last:
        # On a server Optuna's tables follow autotune's, in a transaction of their own.
        assert storages.rows(address) == before
    assert upgrade(address).revisions is not None
    assert upgrade(address) is None


KILLED_WHEN_DONE = """
import os, signal, sys
from pathlib import Path
from autotune.storage.versions import upgrade

def back_up(source, target, really=upgrade._back_up):
    really(source, target)
    if target == Path(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

upgrade._back_up = back_up
upgrade.upgrade(sys.argv[1])
"""


def test_who_was_killed_when_the_file_was_up_to_date_leaves_nothing_beside_it(tmp_path):
    address = f"sqlite:///{tmp_path / 'autotune.db'}"
    older(address)
    command = [sys.executable, "-c", KILLED_WHEN_DONE, address, str(tmp_path / "autotune.db")]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == -9, ended.stderr
    assert (tmp_path / "autotune.db.draft").exists()
    assert upgrade(address) is None
    assert sorted(path.name for path in tmp_path.glob("*.draft*")) == []
