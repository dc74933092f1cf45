"""Tables of a storage, read by statements: a file without SQLAlchemy, which takes longer to import than to read it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from autotune.storage.sqlite.file import READING, sqlite_address

VERSION = 4
"""The version of autotune's tables that this autotune reads and writes."""

_BUSY_TIMEOUT_S = 60
_NAMES = "SELECT name FROM sqlite_master WHERE type = 'table'"


class Tables(Protocol):
    """The tables of one storage. What it refuses is raised as a `StorageError`."""

    def names(self) -> frozenset[str]:
        """Return which tables there are."""

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement asks for, with `values` for its `:names`."""


class SqliteTables:
    """The tables of a SQLite file."""

    def __init__(self, url: str, path: Path, patience_s: float = _BUSY_TIMEOUT_S) -> None:
        """Read the file at `path`, and wait `patience_s` for another process to unlock it; messages call it `url`."""
        self._url = url
        self._path = path
        self._patience_s = patience_s

    def names(self) -> frozenset[str]:
        """Return which tables there are."""
        return frozenset(name for (name,) in self.rows(_NAMES))

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement asks for."""
        with _errors(self._url):
            connection = sqlite3.connect(sqlite_address(self._path), uri=True, timeout=self._patience_s)
            with closing(connection):
                connection.execute(READING)
                return connection.execute(statement, values).fetchall()


@contextmanager
def _errors(url: str) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, OSError):
        from autotune.storage.connection import storage_errors  # noqa: PLC0415  it imports SQLAlchemy

        with storage_errors(url):
            raise
