"""Storages as older autotunes left them, written row by row as those wrote them, in Optuna's tables of today.

What is in them was taken from storages that those versions made.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import sqlalchemy as sa
from optuna.distributions import IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

WHOLE = {"pause": IntDistribution(1, 6), "flag": IntDistribution(1, 2)}
MACHINE = {"host": "vm", "cpu_model": "AMD EPYC", "cpus": [0, 1], "sockets": 1, "cores": 2}
DEFINITION = {
    "objective": "command",
    "options": {"argv": ["sh", "-c", "sleep 0.0{pause}"]},
    "metrics": [{"name": "elapsed_s", "unit": "s", "direction": "minimize"}],
    "space": {
        "parameters": [
            {"type": "integer", "default": 6, "optional": False, "when": None, "help": "", "name": "pause"}
            | {"values": [1, 2, 3, 4, 5, 6]},
            {"type": "integer", "default": None, "optional": True, "when": None, "help": "", "name": "flag"}
            | {"values": [1, 2]},
        ],
        "constraints": [],
        "facts": {"cores": 2},
    },
    "identity": {"command": "sh -c sleep 0.0{pause}", "metrics": ""},
    "facts": {},
    "machine": MACHINE,
    "machine_identity": {"cpu": "AMD EPYC", "cores": "2", "memory_gib": "24"},
    "version": "0.1.0",
}
PAIRS = [[0.0642, 0.0137], [0.0693, 0.0150], [0.0642, 0.0137], [0.0641, 0.0141], [0.0653, 0.0159]]


def job(pause):
    """Return a job as the first autotune stored it."""
    resources = {"cores": 1, "nodes": 1, "gpus": 0, "cpus": []}
    argv = ["sh", "-c", f"sleep 0.0{pause}"]
    return {"argv": argv, "environment": {}, "mpi": None, "flavour": None, "resources": resources, "folder": "/runs"}


def outcome(elapsed_s, failure=None):
    """Return an outcome as the first autotune stored it."""
    usage = {"elapsed_s": elapsed_s, "cpu_s": 0.004, "peak_memory_bytes": 9646080}
    known = {"metrics": {} if failure else {"elapsed_s": elapsed_s}, "failure": failure, "answer": None, "details": {}}
    said = {"code": "exit-code", "message": "ended with exit code 3"} if failure else {"code": "", "message": ""}
    return {**known, **said, "usage": usage, "attempts": 1}


def first(url, name="mine"):
    """Write a study as the first autotune did: a trial has one run, and keeps it.

    Trial 3 was in flight when the session was killed, trial 4 had just ended, trial 5 was never launched.
    """
    study = _study(url, name, DEFINITION)
    verdict = {"winner": 2, "confidence": 0.95, "pairs": PAIRS, "failures": []}
    study.set_user_attr("verdict", verdict)
    complete, running, failed = TrialState.COMPLETE, TrialState.RUNNING, TrialState.FAIL
    _trial(study, complete, {"pause": 6}, value=0.0778, job=job(6), outcome=outcome(0.0778))
    _trial(study, failed, {"pause": 4, "flag": 1}, job=job(4), outcome=outcome(0.0517, "application error"))
    _trial(study, complete, {"pause": 1}, value=0.0272, job=job(1), outcome=outcome(0.0272))
    _trial(study, running, {"pause": 3}, job=job(3))
    _trial(study, running, {"pause": 2}, job=job(2), outcome=outcome(0.0371))
    _trial(study, failed, {"pause": 5}, abandoned=True)


def second(url, name="mine"):
    """Write a study as the second step of autotune did: runs in a table, ablations without the default's value."""
    study = _study(url, name, DEFINITION | {"study": {"name": name, "repeats": {"statistic": "median"}}})
    pairs = [[0.0639, 0.0148], [0.0657, 0.0143], [0.0650, 0.0154], [0.0658, 0.0143], [0.0657, 0.0149], [0.0655, 0.0153]]
    verdict = {"winner": 1, "candidates": [1], "changes": 1, "confidence": 0.95, "asked": 0.05}
    study.set_user_attr("verdict", verdict | {"pairs": pairs, "failures": []})
    alone = [4.343, 4.155, 4.529]
    effect = {
        "parameter": "pause",
        "default": 6,
        "value": 1,
        "alone": alone,
        "within": alone,
        "why": "",
        "unused": False,
    }
    ablation = {"winner": 1, "confidence": 0.95, "rounds": 8, "effects": [effect], "dropped": [], "simplified": None}
    study.set_user_attr("ablation", ablation | {"over_default": None, "over_winner": None})
    _trial(study, TrialState.COMPLETE, {"pause": 6}, value=0.0654, launched=True)
    _trial(study, TrialState.COMPLETE, {"pause": 1}, value=0.0148, launched=True)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        runs = _runs_table(connection)
        number = connection.scalar(sa.text("SELECT study_id FROM studies WHERE study_name = :name"), {"name": name})
        for trial, pause, elapsed_s in ((0, 6, 0.0653), (0, 6, 0.0655), (1, 1, 0.0148)):
            row = {"study": number, "trial": trial, "series": "", "round": 0, "record": record(pause, elapsed_s)}
            connection.execute(sa.insert(runs).values(row))
    engine.dispose()


def record(pause, elapsed_s):
    """Return a run as the second step stored it."""
    ended = outcome(elapsed_s) | {"bound": None, "unused": [], "timeline": [], "conditions": {"load_1m": 1.74}}
    session = {"host": "vm", "autotune": "0.1.0"}
    found = {"configuration": {"pause": pause}, "outcome": ended, "block": 0, "started": "2026-11-21T13:51:35+00:00"}
    return {**found, "job": job(pause), "session": session}


def foreign(url, name="another program's"):
    """Write a study of another program, which calls its attributes as the first autotune did."""
    study = optuna.create_study(storage=_storage(url), study_name=name)
    study.set_user_attr("verdict", {"winner": 0})
    _trial(study, TrialState.COMPLETE, {"pause": 1}, value=1.0, job=job(1), outcome=outcome(1.0))


def present(url, name="mine"):
    """Write a study as the last autotune without versions did: nothing in it is of an older form."""
    study = _study(url, name, DEFINITION | {"study": {}, "installation": []})
    _trial(study, TrialState.COMPLETE, {"pause": 6}, value=0.0654)
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        runs = _runs_table(connection, sa.JSON().with_variant(sa.Text(), "postgresql"))
        written = record(6, 0.0654) | {"steps": None, "of": None}
        told = json.dumps(written) if engine.dialect.name == "postgresql" else written
        connection.execute(sa.insert(runs).values(study=1, trial=0, series="", round=0, record=told))
    engine.dispose()


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


def without_version(url):
    """Make a storage one without a version."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE autotune_schema"))
    engine.dispose()


def set_version(url, version):
    """Let a storage be of another version."""
    _change(url, f"UPDATE autotune_schema SET version = {int(version)}")


def set_revision(url, revision):
    """Let Optuna's tables be of another revision."""
    _change(url, f"UPDATE alembic_version SET version_num = '{revision}'")


def as_json(url):
    """Let the records in PostgreSQL be of its type JSON, as they were before they were texts."""
    _change(url, "ALTER TABLE autotune_runs ALTER COLUMN record TYPE JSON USING record::json")


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


def _runs_table(connection, record_type=None):
    """Make the log of runs as it was made then, in PostgreSQL with its type JSON."""
    table = sa.Table(
        "autotune_runs",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("study", sa.Integer, nullable=False, index=True),
        sa.Column("trial", sa.Integer),
        sa.Column("series", sa.String(200), nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("record", record_type or sa.JSON, nullable=False),
    )
    table.create(connection, checkfirst=True)
    return table


def _study(url, name, definition):
    study = optuna.create_study(storage=_storage(url), study_name=name)
    study.set_user_attr("definition", definition)
    return study


def _trial(study, state, params, value=None, **attributes):
    distributions = {name: WHOLE[name] for name in params}
    trial = create_trial(state=state, params=params, distributions=distributions, value=value, user_attrs=attributes)
    study.add_trial(trial)


def _storage(url):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return RDBStorage(url)
