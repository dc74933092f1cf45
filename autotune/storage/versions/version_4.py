"""Version 4: a run is one by a key of its own, and belongs to its study by a key that is never used again.

Before, runs and leases belonged to the number that Optuna had given to a study, which SQLite gives again.
"""

import sqlalchemy as sa

from autotune.storage.readable import stored_run
from autotune.storage.run_log import RUNS, SqlRunLog, run_digest, stored_keys

_ASIDE = (
    "DROP INDEX ix_autotune_runs_study",
    "ALTER TABLE autotune_runs RENAME TO autotune_runs_3",
    "ALTER TABLE autotune_leases RENAME TO autotune_leases_3",
)
_COPIED = (
    """
    INSERT INTO autotune_runs (study, trial, series, round, record)
    SELECT :key, trial, series, round, record FROM autotune_runs_3 WHERE study = :study ORDER BY id
    """,
    """
    INSERT INTO autotune_leases (study, place, holder, job, heartbeat_s, record)
    SELECT :key, place, holder, job, heartbeat_s, record FROM autotune_leases_3 WHERE study = :study
    """,
)
_REMOVED = ("DROP TABLE autotune_runs_3", "DROP TABLE autotune_leases_3")
_AT_ONCE = 500


def to_version_4(connection: sa.Connection) -> None:
    """Make the tables of runs and leases anew; what belongs to no study is left out."""
    if not sa.inspect(connection).has_table(RUNS.name):
        return  # a storage of imported measurements
    for statement in _ASIDE:
        connection.execute(sa.text(statement))
    SqlRunLog.create_table(connection)
    for study, key in stored_keys(connection).items():
        for statement in _COPIED:
            connection.execute(sa.text(statement), {"key": key, "study": study})
    _give_digests(connection)
    for statement in _REMOVED:
        connection.execute(sa.text(statement))


def _give_digests(connection: sa.Connection) -> None:
    """Give each run its key; a run that was stored twice stays as it is, and its second row has none."""
    given: set[tuple[str, str]] = set()
    last = 0
    wanted = sa.select(RUNS).order_by(RUNS.c.id).limit(_AT_ONCE)
    while rows := connection.execute(wanted.where(RUNS.c.id > last)).all():
        last = rows[-1].id
        for row in rows:
            digest = run_digest(stored_run(row.record, row.trial, row.series, row.round))
            if digest is not None and (row.study, digest) not in given:
                given.add((row.study, digest))
                connection.execute(sa.update(RUNS).where(RUNS.c.id == row.id).values(digest=digest))
