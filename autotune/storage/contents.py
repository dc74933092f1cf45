"""What a storage holds: its kind, its version, how much is in it."""

from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection

from autotune.storage.address import is_postgresql, sqlite_path
from autotune.storage.connection import storage_errors, tables_engine
from autotune.storage.optuna_storage import optuna_revision
from autotune.storage.schema import known_version

_DEFINITION = "definition"


@dataclass(frozen=True)
class Contents:
    """What a storage holds.

    `version` is that of autotune's tables, None without any; `optuna` the revision of Optuna's tables, None without
    any. `studies` are those of autotune, `others` those of other programs.
    """

    kind: str
    version: int | None
    optuna: str | None
    studies: int
    others: int
    trials: int
    runs: int
    imported: int
    size_bytes: int


def read_contents(url: str) -> Contents:
    """Look what is in a storage; nothing is changed.

    Raises:
        StorageError: it is not there, cannot be read, or was written by something else.
    """
    with storage_errors(url):
        engine = tables_engine(url)
        try:
            with engine.connect() as connection:
                version = known_version(connection, url)
                return _contents(connection, url, version, optuna_revision(url))
        finally:
            engine.dispose()


def _contents(connection: Connection, url: str, version: int | None, revision: str | None) -> Contents:
    studies = _rows(connection, "studies")
    ours = _ours(connection)
    return Contents(
        kind=_kind(url, connection),
        version=version,
        optuna=revision,
        studies=ours,
        others=studies - ours,
        trials=_rows(connection, "trials"),
        runs=_rows(connection, "autotune_runs"),
        imported=_rows(connection, "autotune_measurements"),
        size_bytes=_size_bytes(url, connection),
    )


def _kind(url: str, connection: Connection) -> str:
    if sqlite_path(url) is not None:
        return "SQLite file"
    return "PostgreSQL" if is_postgresql(url) else connection.dialect.name


def _rows(connection: Connection, table: str) -> int:
    if not sa.inspect(connection).has_table(table):
        return 0
    return int(connection.scalar(sa.select(sa.func.count()).select_from(sa.table(table))) or 0)


def _ours(connection: Connection) -> int:
    name = "study_user_attributes"
    if not sa.inspect(connection).has_table(name):
        return 0
    attributes = sa.table(name, sa.column("key"))
    wanted = sa.select(sa.func.count()).select_from(attributes).where(attributes.c.key == _DEFINITION)
    return int(connection.scalar(wanted) or 0)


def _size_bytes(url: str, connection: Connection) -> int:
    path = sqlite_path(url)
    if path is not None:
        files: tuple[Path, ...] = (path, path.with_name(f"{path.name}-wal"))
        return sum(one.stat().st_size for one in files if one.exists())
    if not is_postgresql(url):
        return 0
    return int(connection.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0)
