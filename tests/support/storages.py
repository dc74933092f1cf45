"""What a storage holds, row by row, and storages that another program or another version wrote."""

import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import sqlalchemy as sa
from optuna.distributions import IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial


def foreign(url, name="another program's"):
    """Write a study of another program, which calls its attributes as autotune does."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(storage=RDBStorage(url), study_name=name)
    study.set_user_attr("verdict", {"winner": 0})
    params, distributions = {"pause": 1}, {"pause": IntDistribution(1, 6)}
    attributes = {"bound": 3.0}
    study.add_trial(
        create_trial(
            state=TrialState.COMPLETE, params=params, distributions=distributions, value=1.0, user_attrs=attributes
        )
    )


def rows(url):
    """Return everything that a storage holds, by table, but for its version."""
    engine = sa.create_engine(url)
    metadata = sa.MetaData()
    with engine.connect() as connection:
        metadata.reflect(connection)
        found = {
            name: sorted(map(repr, connection.execute(sa.select(table)).all()))
            for name, table in metadata.tables.items()
            if name != "autotune_schema"
        }
    engine.dispose()
    assert any(found.values()), "there is nothing in this storage"
    return found


def version(url):
    """Return the version of a storage."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(sa.text("SELECT version FROM autotune_schema")).scalar_one()
    engine.dispose()
    return found


def set_version(url, version):
    """Let a storage be of another version; 0 is from before there were versions."""
    if version:
        _change(url, f"UPDATE autotune_schema SET version = {int(version)}")
    else:
        _change(url, "DROP TABLE autotune_schema")


_VERSION_3 = """
CREATE TABLE old_runs AS SELECT * FROM autotune_runs;
DROP TABLE autotune_runs;
CREATE TABLE autotune_runs (id INTEGER NOT NULL PRIMARY KEY, study INTEGER NOT NULL, trial INTEGER,
    series VARCHAR(200) NOT NULL, round INTEGER NOT NULL, record {record} NOT NULL);
INSERT INTO autotune_runs SELECT id, {study}, trial, series, round, record FROM old_runs;
CREATE INDEX ix_autotune_runs_study ON autotune_runs (study);
DROP TABLE old_runs;
CREATE TABLE old_leases AS SELECT * FROM autotune_leases;
DROP TABLE autotune_leases;
CREATE TABLE autotune_leases (study INTEGER NOT NULL, place TEXT NOT NULL, holder TEXT NOT NULL, job TEXT,
    heartbeat_s DOUBLE PRECISION NOT NULL, record {record} NOT NULL, PRIMARY KEY (study, place));
INSERT INTO autotune_leases SELECT {study}, place, holder, job, heartbeat_s, record FROM old_leases;
DROP TABLE old_leases
"""


def to_version_3(url):
    """Let a storage be as version 3 wrote it."""
    engine = sa.create_engine(url)
    record = "TEXT" if engine.dialect.name == "postgresql" else "JSON"
    number = "substr(study, 1, position('-' in study) - 1)" if record == "TEXT" else "study"
    with engine.begin() as connection:
        for statement in _VERSION_3.format(record=record, study=f"CAST({number} AS INTEGER)").split(";"):
            connection.execute(sa.text(statement))
    engine.dispose()
    set_version(url, 3)


def set_revision(url, revision):
    """Let Optuna's tables be of another revision."""
    _change(url, f"UPDATE alembic_version SET version_num = '{revision}'")


def copies(folder: Path):
    """Return the copies of storages that were made, by name; each must be a whole database."""
    found = sorted(folder.glob("*.bak"))
    for one in found:
        with closing(sqlite3.connect(one)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return [one.name for one in found]


def _change(url, statement):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement)).rowcount != 0
    engine.dispose()
