"""Connections to the tables of storages, without Optuna; what goes wrong there, in words."""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import sqlalchemy
import sqlalchemy.exc
from sqlalchemy import Connection, Engine, NullPool, func, select

from autotune.errors import StorageError
from autotune.storage.address import is_postgresql, shown, sqlite_path
from autotune.storage.sqlite.file import READING, check_writable, merge_log_at_exit, sqlite_address
from autotune.storage.sqlite.journal import set_journal

_T = TypeVar("_T")

_BUSY_TIMEOUT_S = 60
_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 30.0
_READ_ONLY = "25006"  # https://www.postgresql.org/docs/current/errcodes-appendix.html
_CONNECT_TIMEOUT_S = 20
_SET_UP = 0x6175746F74756E65  # "autotune", in ASCII


class StorageAwayError(StorageError):
    """A storage does not answer now, and may in a while."""


def prepare_sqlite(url: str) -> None:
    """Make the file of a SQLite address if it is not there; others may read it meanwhile, where that is safe."""
    path = sqlite_path(url)
    if path is None:
        return
    check_writable(path)
    merge_log_at_exit(path)
    with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as connection:
        set_journal(connection, path)


@contextmanager
def setup_lock(url: str) -> Iterator[None]:
    """Make tables while nobody else does: of two that make the same in PostgreSQL at the same time, one would fail."""
    if not is_postgresql(url):
        yield
        return
    engine = sqlalchemy.create_engine(writable_address(url), poolclass=NullPool, **engine_arguments(url))
    with engine.begin() as connection:
        # Given back with the transaction, also when this process is killed in it.
        connection.execute(select(func.pg_advisory_xact_lock(_SET_UP)))
        yield


@contextmanager
def write_transaction(url: str) -> Iterator[Connection]:
    """Provide a transaction for changes of tables, too: all of them or, whatever happens, none. Others wait for it."""
    engine = sqlalchemy.create_engine(writable_address(url), poolclass=NullPool, **engine_arguments(url))
    if sqlite_path(url) is not None:
        # Python's driver would begin with the first row that is written, after the tables are made.
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
    """Return an engine that reads a storage, whoever made it and whatever tables it has.

    Raises:
        StorageError: it is a file that is not there.
    """
    engine = sqlalchemy.create_engine(readable_address(url), **engine_arguments(url, read_only=True))
    if sqlite_path(url) is not None:
        sqlalchemy.event.listen(engine, "connect", make_read_only)
    return engine


class ServerTables:
    """The tables at an address, by SQLAlchemy."""

    def __init__(self, url: str) -> None:
        """Connect to a database."""
        self._url = url
        with storage_errors(url):
            self._engine = tables_engine(url)

    def names(self) -> frozenset[str]:
        """Return which tables there are."""
        with storage_errors(self._url):
            return frozenset(sqlalchemy.inspect(self._engine).get_table_names())

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement asks for."""
        with storage_errors(self._url), self._engine.connect() as connection:
            return list(connection.execute(sqlalchemy.text(statement), values))


def make_read_only(connection: sqlite3.Connection, record: object) -> None:
    """Let a new connection to a file change nothing."""
    del record
    connection.execute(READING)


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turn whatever a storage refuses into a `StorageError` that says what to do."""
    try:
        yield
    except (sqlalchemy.exc.SQLAlchemyError, sqlite3.Error, PermissionError) as error:
        raise _unusable(url, error) from error
    except ImportError as error:
        package = "'psycopg[binary]'" if is_postgresql(url) else "the driver that the address names"
        msg = (
            f"storage {shown(url)} cannot be used: the driver for it is not installed ({error.__cause__ or error}); "
            f"install it: {sys.executable} -m pip install {package}"
        )
        raise StorageError(msg) from error
    except _refusals_of_optuna() as error:
        raise _unusable(url, error) from error


def _refusals_of_optuna() -> tuple[type[Exception], ...]:
    """Return what Optuna raises of a storage; nothing where it is not loaded, and so has raised nothing."""
    if "optuna" not in sys.modules:
        return ()
    from optuna.exceptions import StorageInternalError  # noqa: PLC0415  reading a study needs none of Optuna

    return (StorageInternalError,)


def _unusable(url: str, error: Exception) -> StorageError:
    cause = error.__cause__ or error
    reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
    kind = StorageAwayError if _is_away(url, error) else StorageError
    ask = "disk full? read-only? another program's file?"
    if sqlite_path(url) is None:
        ask = "is the server there? does it know this user, the password and the database?"
    return kind(
        f"storage {shown(url)} cannot be used: {reason}; what was finished before is safe, "
        f"mend it ({ask}) and use the same command again"
    )


def _is_away(url: str, error: Exception) -> bool:
    """Whether a storage may answer again: a server that is restarted, a file that another process keeps locked."""
    refusal = next((one for one in (error, error.__cause__) if isinstance(one, sqlalchemy.exc.DBAPIError)), None)
    if refusal is None:
        return False
    if sqlite_path(url) is not None:
        return "locked" in str(refusal.orig)
    # A standby that is not yet the primary takes no writes.
    reads_only = getattr(refusal.orig, "sqlstate", None) == _READ_ONLY
    away = isinstance(refusal, (sqlalchemy.exc.OperationalError, sqlalchemy.exc.InterfaceError))
    return away or refusal.connection_invalidated or reads_only


@dataclass
class Patience:
    """Waits for a storage that does not answer, with growing pauses, for at most `most_s`; `say` gets messages of it.

    What is done is done again, so it must come to the same when it was done already and only the answer was lost.
    """

    most_s: float = 0.0
    say: Callable[[str], None] = lambda _: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def __call__(self, use: Callable[[], _T]) -> _T:
        """Return what `use` returns, once the storage answers.

        Raises:
            StorageError: the storage did not answer in time, or refuses.
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
                    # A caller that waits around this call has waited enough.
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
    return (
        f"the storage does not answer since {at:%H:%M:%S}: waiting up to {most_s / 60:.3g} min, runs go on ({reason})"
    )


def engine_arguments(url: str, *, read_only: bool = False) -> dict[str, object]:
    """Return what an engine for an address is made with."""
    if sqlite_path(url) is not None:
        # Who reads closes each connection at once: the last one takes away what SQLite keeps beside the file.
        return {"connect_args": {"timeout": _BUSY_TIMEOUT_S}} | ({"poolclass": NullPool} if read_only else {})
    if not is_postgresql(url):
        return {"pool_pre_ping": True}
    return {
        "pool_pre_ping": True,
        "connect_args": {"connect_timeout": _CONNECT_TIMEOUT_S},
        "execution_options": {"postgresql_readonly": True} if read_only else {},
    }


def writable_address(url: str) -> str:
    """Return the address by which a storage is written; `#`, `?` and `%` in the folder of a file change nothing."""
    path = sqlite_path(url)
    return url if path is None else _file_address(f"file:{quote(str(path.absolute()))}", "mode=rwc")


def readable_address(url: str) -> str:
    """Return an address by which a storage can be read only, as far as it has such a one.

    Raises:
        StorageError: it is a file that is not there.
    """
    path = sqlite_path(url)
    if path is None:
        return url
    if not path.is_file():
        msg = f"no storage at {path}; `autotune study` makes it, --storage or AUTOTUNE_STORAGE names another"
        raise StorageError(msg)
    file, _, mode = sqlite_address(path).partition("?")
    return _file_address(file, mode)


def _file_address(file: str, mode: str) -> str:
    # SQLAlchemy decodes the path before SQLite does.
    return f"sqlite:///{quote(file, safe='/:')}?{mode}&uri=true"
