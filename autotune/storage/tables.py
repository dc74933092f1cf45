"""Reading the tables of a storage by SQL: a file without SQLAlchemy, whose import takes longer than the reading."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from autotune.storage.address import is_postgresql, sqlite_path
from autotune.storage.sqlite.file import connect_reader

VERSION = 4
"""The version of autotune's tables that this autotune reads and writes."""

_BUSY_TIMEOUT_S = 60
_TABLE_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"
_COMPLETION_S = 2
# Optuna's tables. Another program's study has no definition.
_STUDY_NAMES = (
    "SELECT study_name FROM studies JOIN study_user_attributes ON studies.study_id = study_user_attributes.study_id "
    "WHERE study_user_attributes.key = 'definition' ORDER BY study_name"
)


class Tables(Protocol):
    """The tables of one storage. Every error of the database is raised as a `StorageError`."""

    def names(self) -> frozenset[str]:
        """Return the names of all tables."""

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement selects, with `values` for its `:names`."""


class SqliteTables:
    """The tables of a SQLite file."""

    def __init__(self, url: str, path: Path, patience_s: float = _BUSY_TIMEOUT_S) -> None:
        """Read the file at `path`, and wait `patience_s` for another process to unlock it; messages call it `url`."""
        self._url = url
        self._path = path
        self._patience_s = patience_s

    def names(self) -> frozenset[str]:
        """Return the names of all tables."""
        return frozenset(name for (name,) in self.rows(_TABLE_NAMES))

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement selects."""
        with _errors(self._url), closing(connect_reader(self._path, self._patience_s)) as connection:
            return connection.execute(statement, values).fetchall()


def stored_names(url: str) -> list[str]:
    """Return the names of a storage's studies, for completion by a shell: within two seconds, and without Optuna.

    Raises:
        Exception: The storage cannot be read in time. Each server's driver raises its own errors.
    """
    path = sqlite_path(url)
    if path is not None:
        return [str(name) for (name,) in SqliteTables(url, path, _COMPLETION_S).rows(_STUDY_NAMES)]
    import sqlalchemy as sa  # noqa: PLC0415  for servers only

    arguments = {"connect_timeout": _COMPLETION_S} if is_postgresql(url) else {}
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args=arguments)
    with engine.connect() as connection:
        return [str(name) for name in connection.scalars(sa.text(_STUDY_NAMES))]


@contextmanager
def _errors(url: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError):
        from autotune.storage.connection import storage_errors  # noqa: PLC0415  it imports SQLAlchemy

        with storage_errors(url):
            raise
