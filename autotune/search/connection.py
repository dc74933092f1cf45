"""Connections to storages: Optuna's, and to the tables that lie beside them; what goes wrong there, in words."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager

import optuna
import sqlalchemy
import sqlalchemy.exc
from optuna.storages import RDBStorage
from sqlalchemy import Engine

from autotune.errors import StorageError
from autotune.storage_url import shown, sqlite_path

_BUSY_TIMEOUT_S = 60


def prepare_sqlite(url: str) -> None:
    """Make the file of a SQLite address if it is not there, and let others read it while it is written."""
    path = sqlite_path(url)
    if path is None:
        return
    with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as connection:
        # Readers (list, show, a dashboard) must not block the coordinator, nor it them.
        connection.execute("PRAGMA journal_mode=WAL")


def connect(url: str, *, read_only: bool = False) -> RDBStorage:
    """Return Optuna's storage at an address.

    Raises:
        StorageError: it is a file that is to be read, and is not there.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    arguments = _engine_arguments(url)
    address = _readable(url) if read_only else url
    is_file = sqlite_path(url) is not None
    return RDBStorage(address, engine_kwargs=arguments, skip_table_creation=read_only and is_file)


def tables_engine(url: str) -> Engine:
    """Return an engine that reads a storage, whoever made it and whatever tables it has.

    Raises:
        StorageError: it is a file that is not there.
    """
    return sqlalchemy.create_engine(_readable(url), **_engine_arguments(url))


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turn whatever a storage refuses into a `StorageError` that says what to do."""
    try:
        yield
    except (
        sqlalchemy.exc.SQLAlchemyError,
        sqlite3.Error,
        optuna.exceptions.StorageInternalError,
        ImportError,
    ) as error:
        cause = error.__cause__ or error
        reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        msg = (
            f"storage {shown(url)} cannot be used: {reason}; what was finished before is safe, "
            "mend it (disk full? read-only? another program's file?) and use the same command again"
        )
        raise StorageError(msg) from error


def _engine_arguments(url: str) -> dict[str, object]:
    if sqlite_path(url) is None:
        return {"pool_pre_ping": True}
    return {"connect_args": {"timeout": _BUSY_TIMEOUT_S}}


def _readable(url: str) -> str:
    path = sqlite_path(url)
    if path is None:
        return url
    if not path.is_file():
        msg = f"no storage at {path}; `autotune study` makes it, --storage or AUTOTUNE_STORAGE names another"
        raise StorageError(msg)
    return f"sqlite:///file:{path.absolute()}?mode=ro&uri=true"
