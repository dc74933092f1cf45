"""The contents of a storage: its kind, its version, and the number of studies, trials and runs."""

from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection

from autotune.storage.address import is_postgresql, sqlite_path
from autotune.storage.connection import reading_connection, storage_errors
from autotune.storage.optuna_storage import optuna_revision
from autotune.storage.readable_study import DEFINITION
from autotune.storage.schema import known_version


@dataclass(frozen=True)
class Contents:
    """A summary of a storage.

    Attributes:
        kind: The database, in words.
        version: The version of autotune's tables; None without such tables.
        optuna: The revision of Optuna's tables; None without such tables.
        studies: The number of autotune's studies.
        others: The number of studies of other programs.
        trials: The number of trials of all studies.
        runs: The number of autotune's runs.
        imported: The number of imported measurements.
        size_bytes: The size of the file or database; 0 if unknown.
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
    """Read what a storage holds, without changing it.

    Raises:
        StorageError: It does not exist, cannot be read, or has tables of another version.
    """
    with storage_errors(url), reading_connection(url) as connection:
        version = known_version(connection, url)
        return _contents(connection, url, version, optuna_revision(url))


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
    wanted = sa.select(sa.func.count()).select_from(attributes).where(attributes.c.key == DEFINITION)
    return int(connection.scalar(wanted) or 0)


def _size_bytes(url: str, connection: Connection) -> int:
    path = sqlite_path(url)
    if path is not None:
        files: tuple[Path, ...] = (path, path.with_name(f"{path.name}-wal"))
        return sum(one.stat().st_size for one in files if one.exists())
    if not is_postgresql(url):
        return 0
    return int(connection.scalar(sa.text("SELECT pg_database_size(current_database())")) or 0)
