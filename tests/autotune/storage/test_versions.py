"""Storages of other versions and other programs, whoever is killed or comes at the same time."""

import itertools
import re
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from importlib.resources import files

import pytest
import sqlalchemy
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from autotune.errors import StorageError
from autotune.storage import optuna_storage, schema
from autotune.storage.connection import reading_connection, tables_engine, writing_engine
from autotune.storage.contents import read_contents
from autotune.storage.measurement_store import MeasurementStore
from autotune.storage.stored_study import find_stored_studies, open_stored_studies, open_stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_store import StudyStore, study_names
from tests.autotune.storage.test_measurement_store import THREE
from tests.support import storages
from tests.support.fakes import definition, small_space

PAPER = definition(small_space())


def write(address):
    """Open a storage for writing as a session does."""
    return StudyStore.create(address, "paper", PAPER)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (schema.VERSION + 1, r"newer autotune \(version 5 .* reads version 4: update autotune"),
        (3, r"older autotune \(version 3 .* reads version 4: use another one, --storage"),
        (0, r"older autotune \(version 0 of its tables"),
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
        lambda: open_stored_studies(address),
        lambda: study_names(address),
        lambda: MeasurementStore.read(address),
        lambda: StudyStore.create(address, "paper", PAPER),
        lambda: StudyStore.create(address, "other", PAPER),
        lambda: MeasurementStore.create(address),
        lambda: read_contents(address),
    ):
        with pytest.raises(StorageError, match=said) as caught:
            use()
        assert "\n" not in str(caught.value)
    assert storages.rows(address) == before
    if version:
        assert storages.version(address) == version


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        ("v3.0.0.d", r"older Optuna \(revision v3\.0\.0\.d\).*optuna storage upgrade"),
        ("v99.0.0.a", r"newer Optuna \(revision v99\.0\.0\.a\).*pip install"),
    ],
)
def test_a_storage_of_another_optuna_is_neither_read_nor_written(address, revision, said):
    write(address)
    storages.set_revision(address, revision)
    before = storages.rows(address)
    secret = re.search(r":([^:/@]+)@", address)
    for use in (
        lambda: StudyStore.read(address, "paper"),
        lambda: StudyStore.create(address, "other", PAPER),
        lambda: open_stored_study(address, "paper"),
        lambda: open_stored_studies(address),
        lambda: MeasurementStore.create(address),
        lambda: study_names(address),
        lambda: read_contents(address),
    ):
        with pytest.raises(StorageError, match=said) as caught:
            use()
        assert "\n" not in str(caught.value)
        assert secret is None or secret[1] not in str(caught.value)
    assert storages.rows(address) == before


def test_the_studies_of_other_programs_stay_as_they_are(address):
    storages.foreign(address)
    before = storages.rows(address)
    assert MeasurementStore.read(address).measurements() == []
    assert storages.rows(address) == before
    write(address)
    after = storages.rows(address)
    assert {name: [row for row in rows if row not in after[name]] for name, rows in before.items() if rows} == {
        name: [] for name, rows in before.items() if rows
    }
    assert storages.version(address) == schema.VERSION


@contextmanager
def full_after(writes):
    """Let the disk be full after this many tables and rows were written."""
    count = 0

    def write(connection, cursor, statement, *rest):
        nonlocal count
        if re.match("CREATE|INSERT", statement.strip()):
            count += 1
            if count > writes:
                raise sqlite3.OperationalError("database or disk is full")

    sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", write)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "before_cursor_execute", write)


@contextmanager
def each_table_committed(url):
    """Provide a connection that commits each statement, as MySQL commits each table."""
    engine = writing_engine(url, isolation_level="AUTOCOMMIT", poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        yield connection


@pytest.mark.slow
@pytest.mark.parametrize("transaction", [optuna_storage.write_transaction, each_table_committed])
def test_a_storage_on_a_full_disk_is_completed_by_the_same_command(tmp_path, monkeypatch, transaction):
    monkeypatch.setattr(optuna_storage, "write_transaction", transaction)
    for writes in itertools.count():
        address = f"sqlite:///{tmp_path / f'{writes}.db'}"
        with full_after(writes):
            try:
                StoredStudies(address)
            except StorageError as error:
                said = str(error)
            else:
                break
        assert "disk is full" in said
        for read in (study_names, open_stored_studies):
            with pytest.raises(StorageError, match="no studies"):
                read(address)
        assert find_stored_studies(address) == []
        assert read_contents(address).studies == 0
        assert not MeasurementStore.read(address).has_studies()
        if transaction is not each_table_committed:
            assert not sqlalchemy.inspect(tables_engine(address)).get_table_names()
        write(address)
        assert study_names(address) == ["paper"]
    assert writes > 10


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_versions import PAPER

@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, *rest):
    if "INSERT INTO autotune_schema" in statement:
        os.kill(os.getpid(), signal.SIGKILL)

StudyStore.create(sys.argv[1], "paper", PAPER)
"""


@pytest.mark.slow
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
from tests.autotune.storage.test_versions import PAPER
print("ready", flush=True)
sys.stdin.readline()
StudyStore.create(sys.argv[1], sys.argv[2], PAPER)
"""


@pytest.mark.slow
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


@pytest.mark.parametrize("statements", [2, 3])
def test_tables_that_another_session_creates_meanwhile_are_not_those_of_an_older_version(address, statements):
    storages.foreign(address)
    count = 0

    def create_meanwhile(*_):
        nonlocal count
        count += 1
        if count == statements:
            write(address)

    with reading_connection(address) as connection:
        sqlalchemy.event.listen(connection, "before_cursor_execute", create_meanwhile)
        assert schema.known_version(connection, address) in (None, schema.VERSION)
        while count < statements:
            connection.execute(sqlalchemy.text("SELECT 1"))
    assert storages.version(address) == schema.VERSION


def test_the_revisions_of_optunas_tables_are_those_that_alembic_finds(tmp_path):
    steps = ScriptDirectory(str(files("optuna.storages._rdb") / "alembic"))
    assert optuna_storage._revisions() == {step.revision: step.down_revision for step in steps.walk_revisions()}
    made = []
    for name in ("ours", "alembics"):
        engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / name}.db")
        with engine.begin() as connection:
            if name == "ours":
                optuna_storage._make_optuna_tables(connection)
            else:
                MigrationContext.configure(connection).stamp(steps, "head")
            assert MigrationContext.configure(connection).get_current_revision() == steps.get_current_head()
            found = sqlalchemy.MetaData()
            found.reflect(connection, only=["alembic_version"])
            made.append(repr(found.tables["alembic_version"].columns.values()))
    assert made[0] == made[1]
