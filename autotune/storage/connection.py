"""Connections to storages without Optuna, and the error messages for storages that fail."""

import os
import re
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakMethod

import sqlalchemy
import sqlalchemy.exc
from sqlalchemy import Connection, Engine, NullPool

from autotune.errors import StorageError
from autotune.storage.address import check_exists, hide_password, is_postgresql, sqlite_path
from autotune.storage.damage import content_errors
from autotune.storage.sqlite.file import check_writable, connect_reader
from autotune.storage.sqlite.held_file import CautiousConnection, HeldFile, hold_file
from autotune.storage.sqlite.journal import set_journal

_T = TypeVar("_T")

_BUSY_TIMEOUT_S = 60
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 30.0
_LOCKED = re.compile("locked|locking protocol")
_READ_ONLY = "25006"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
_CONNECT_TIMEOUT_S = 20
# SQLite writes pages of 64 KiB at most, each with a header in the log.
_WRITTEN_AT_ONCE_BYTES = 2**17


class StorageAwayError(StorageError):
    """A storage does not answer now, but may answer later."""


def prepare_sqlite(url: str) -> HeldFile | None:
    """Return the held file of a SQLite address, and set its journal so that others can read it safely.

    Create the file if it is missing. Return None for another storage.
    """
    path = sqlite_path(url)
    if path is None:
        return None
    check_writable(path)
    held = hold_file(path, _BUSY_TIMEOUT_S)
    set_journal(held.connection, path)
    held.open_log()
    return held


def writing_engine(url: str, **arguments: Any) -> Engine:  # noqa: ANN401  as `create_engine` has them
    """Return an engine that writes to a storage; a SQLite file must exist, and is created by `prepare_sqlite`."""
    engine = sqlalchemy.create_engine(writable_address(url), **engine_arguments(url), **arguments)
    path = sqlite_path(url)
    if path is not None:
        guard_file(engine, hold_file(path, _BUSY_TIMEOUT_S))
    return engine


def guard_file(engine: Engine, held: HeldFile) -> None:
    """Let each connection and each transaction of an engine first check that its SQLite file is still at its path."""
    sqlalchemy.event.listen(engine, "begin", held.check)
    # The engine's dialect has this listener, and SQLAlchemy's caches of statements keep the dialect after the engine.
    check = WeakMethod(held.check)

    def check_before_connecting(*_: object) -> None:
        if (check_now := check()) is not None:
            check_now()

    sqlalchemy.event.listen(engine, "do_connect", check_before_connecting)
    held.used_by(engine)
    held.open_log()


@contextmanager
def write_transaction(url: str) -> Iterator[Connection]:
    """Provide a transaction that may also create and change tables. Other writers wait until it ends."""
    engine = writing_engine(url, poolclass=NullPool)
    if sqlite_path(url) is not None:
        # Python's driver would only begin the transaction at the first written row, after the tables are created.
        # https://docs.sqlalchemy.org/en/20/dialects/sqlite.html#enabling-non-legacy-sqlite-transactional-modes-with-the-sqlite3-or-aiosqlite-driver
        sqlalchemy.event.listen(engine, "connect", _without_implicit_transactions)
        sqlalchemy.event.listen(engine, "begin", _begin_as_writer)
    with engine.begin() as connection:
        yield connection


def _without_implicit_transactions(connection: sqlite3.Connection, record: object) -> None:
    del record
    connection.isolation_level = None


def _begin_as_writer(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def tables_engine(url: str) -> Engine:
    """Return an engine that reads any storage, also one that another program made.

    Raises:
        StorageError: The file does not exist.
    """
    return sqlalchemy.create_engine(readable_address(url), **engine_arguments(url, read_only=True))


@contextmanager
def reading_connection(url: str) -> Iterator[Connection]:
    """Provide a connection that reads any storage, and close it.

    Raises:
        StorageError: The file does not exist.
    """
    engine = tables_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


class ServerTables:
    """The tables of a storage on a server, read through SQLAlchemy."""

    def __init__(self, url: str) -> None:
        """Connect to a database."""
        self._url = url
        with storage_errors(url):
            self._engine = tables_engine(url)

    def names(self) -> frozenset[str]:
        """Return the names of all tables."""
        with storage_errors(self._url):
            return frozenset(sqlalchemy.inspect(self._engine).get_table_names())

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement selects."""
        with storage_errors(self._url), self._engine.connect() as connection:
            return list(connection.execute(sqlalchemy.text(statement), values))


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turn every error of a storage or of its content into a `StorageError` that says what to do."""
    with content_errors(f"storage {hide_password(url)}"), database_errors(url):
        yield


@contextmanager
def database_errors(url: str) -> Iterator[None]:
    """Turn every error of a database into a `StorageError` that says what to do."""
    try:
        yield
    except BrokenPipeError:  # of what prints meanwhile
        raise
    except (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
        raise _unusable(url, error) from error
    except ImportError as error:
        package = "'psycopg[binary]'" if is_postgresql(url) else "the driver that the address names"
        msg = (
            f"storage {hide_password(url)} cannot be used: the driver for it is not installed "
            f"({error.__cause__ or error}); install it: {sys.executable} -m pip install {package}"
        )
        raise StorageError(msg) from error
    except _refusals_of_optuna() as error:
        raise _unusable(url, error) from error


def _refusals_of_optuna() -> tuple[type[Exception], ...]:
    """Return the errors that Optuna and its Alembic raise for a storage; none if Optuna is not loaded."""
    if "optuna" not in sys.modules:
        return ()
    from alembic.util import CommandError  # noqa: PLC0415  reading a study needs none of Optuna
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415

    return (StorageInternalError, CommandError)


def _unusable(url: str, error: Exception) -> StorageError:
    cause = error.__cause__ or error
    reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
    kind = StorageAwayError if _is_away(url, error) else StorageError
    head = f"storage {hide_password(url)} cannot be used: {reason}; what was finished before is safe, "
    path = sqlite_path(url)
    if path is not None and (closed := " ".join(_unreadable_files(path))):
        return kind(
            f"storage {hide_password(url)} cannot be opened: you may not read {closed}; its owner can let you read it "
            f"(chmod a+r {closed}), or share its folder with a group (docs/storage.md)"
        )
    if path is not None and _LOCKED.search(reason):
        return kind(
            f"{head}another process keeps the file locked: wait until that has ended, then use the same command again "
            f"(`fuser -v {path}*` names yours; others can lock what they can read: `chmod go= {path}*` keeps their new "
            f"processes out, and a copy of {path} and {path}-wal is free of the old ones' locks)"
        )
    if path is not None and (most_bytes := _reached_limit(path)) is not None:
        return kind(
            f"{head}no file of this process may be larger than {most_bytes / 1024:.0f} KiB (ulimit -f): raise that "
            "limit (ulimit -f unlimited), then use the same command again"
        )
    ask = "disk full? read-only? another program's file?"
    if path is None:
        ask = "is the server there? does it know this user, the password and the database?"
    return kind(f"{head}mend it ({ask}) and use the same command again")


def _unreadable_files(path: Path) -> list[str]:
    """Return which files of a storage this user may not read: the file itself, and its log, which SQLite needs, too."""
    files = (str(path), f"{path}-wal", f"{path}-shm")
    return [one for one in files if os.access(one, os.F_OK) and not os.access(one, os.R_OK)]


def _reached_limit(path: Path) -> int | None:
    """Return the largest size that this process may give a file, if the storage or its log is about as large."""
    most_bytes, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    files = [one for one in (path, Path(f"{path}-wal")) if one.exists()]
    is_near = any(one.stat().st_size + _WRITTEN_AT_ONCE_BYTES > most_bytes for one in files)
    return most_bytes if most_bytes != resource.RLIM_INFINITY and is_near else None


def _is_away(url: str, error: Exception) -> bool:
    """Whether a storage may answer again: its server restarts, or another process keeps its file locked."""
    refusal = next((one for one in (error, error.__cause__) if isinstance(one, sqlalchemy.exc.DBAPIError)), None)
    if refusal is None:
        return False
    if sqlite_path(url) is not None:
        return _LOCKED.search(str(refusal.orig)) is not None
    # A standby server refuses writes until it becomes the primary.
    reads_only = getattr(refusal.orig, "sqlstate", None) == _READ_ONLY
    away = isinstance(refusal, (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError))
    return away or refusal.connection_invalidated or reads_only


@dataclass
class Patience:
    """Retries operations on a storage that does not answer, with growing pauses.

    The lost answer may be that of an operation that succeeded, so a repeated operation must have no further effect.

    Attributes:
        most_s: The longest time to wait, in seconds.
        say: Gets messages about waiting.
        clock: Returns seconds that never go back.
        sleep: Pauses for a number of seconds.
    """

    most_s: float = 0.0
    say: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, use: Callable[[], _T]) -> _T:
        """Return what `use` returns, once the storage answers.

        Raises:
            StorageError: The storage did not answer in time, or refuses the operation.
        """
        since, pause_s = None, _FIRST_PAUSE_S
        while True:
            try:
                result = use()
            except StorageAwayError as error:
                now = self.clock()
                if since is None:
                    since = now
                    if self.most_s > 0.0:
                        self.say(_waits(error, self.most_s))
                left_s = since + self.most_s - now
                if left_s <= 0.0:
                    # Not StorageAwayError: a caller with its own patience must not wait again.
                    raise StorageError(str(error)) from error
                self.sleep(min(pause_s, left_s))
                pause_s = min(2.0 * pause_s, _LONGEST_PAUSE_S)
            else:
                if since is not None:
                    self.say(f"the storage answers again, after {self.clock() - since:.0f} s")
                return result


def _waits(error: StorageAwayError, most_s: float) -> str:
    at = datetime.now().astimezone()
    reason = str(error).partition("; ")[0]
    waiting = f"waiting up to {most_s / 60:.3g} min, runs continue ({reason})"
    return f"the storage has not answered since {at:%H:%M:%S}: {waiting}"


def engine_arguments(url: str, *, read_only: bool = False) -> dict[str, object]:
    """Return the keyword arguments of `create_engine` for an address."""
    path = sqlite_path(url)
    if path is not None and read_only:
        # Readers close each connection at once: SQLite removes its log beside the file with the last connection.
        return {"creator": partial(connect_reader, path, _BUSY_TIMEOUT_S), "poolclass": NullPool}
    if path is not None:
        return {"connect_args": {"timeout": _BUSY_TIMEOUT_S, "factory": CautiousConnection}}
    if not is_postgresql(url):
        return {"pool_pre_ping": True}
    return {
        "pool_pre_ping": True,
        "connect_args": {"connect_timeout": _CONNECT_TIMEOUT_S},
        "execution_options": {"postgresql_readonly": True} if read_only else {},
    }


def writable_address(url: str) -> str:
    """Return the address for writing to a storage, with `#`, `?` and `%` in a file's path escaped."""
    path = sqlite_path(url)
    if path is None:
        return url
    # SQLAlchemy decodes the path before SQLite does.
    return f"sqlite:///{quote(f'file:{quote(str(path.absolute()))}', safe='/:')}?mode=rw&uri=true"


def readable_address(url: str) -> str:
    """Return the address for reading a storage: of a file only its kind, which `engine_arguments` connects to.

    Raises:
        StorageError: The file does not exist.
    """
    check_exists(url)
    return url if sqlite_path(url) is None else "sqlite://"
