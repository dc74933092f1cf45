"""Connections to storages: Optuna's, and to the tables that lie beside them; what goes wrong there, in words."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import optuna
import sqlalchemy
import sqlalchemy.exc
from optuna.storages import RDBStorage
from sqlalchemy import Connection, Engine, NullPool, func, select
from sqlalchemy.sql.functions import FunctionElement

from autotune.errors import StorageError
from autotune.storage.address import is_postgresql, shown, sqlite_path
from autotune.storage.schema import known_version, newer_optuna, older_optuna

_BUSY_TIMEOUT_S = 60
_CONNECT_TIMEOUT_S = 20
_STUDIES, _REVISIONS = "studies", "alembic_version"  # tables of Optuna's
_PROPOSING = 0x61736B  # "ask", in ASCII
_SET_UP = 0x6175746F74756E65  # "autotune", in ASCII


def prepare_sqlite(url: str) -> None:
    """Make the file of a SQLite address if it is not there, and let others read it while it is written."""
    path = sqlite_path(url)
    if path is None:
        return
    with closing(sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S)) as connection:
        # Readers (list, show, a dashboard) must not block the coordinator, nor it them.
        connection.execute("PRAGMA journal_mode=WAL")


@contextmanager
def set_up_alone(url: str) -> Iterator[None]:
    """Make tables while nobody else does: of two that make the same in PostgreSQL at the same time, one would fail."""
    with _advisory_lock(url, func.pg_advisory_xact_lock(_SET_UP)):
        yield


@contextmanager
def held_alone(url: str, study_id: int, engine: Engine | None) -> Iterator[None]:
    """Hold a study against others who do the same, by a connection of `engine`; with a file nobody else is there."""
    with _advisory_lock(url, func.pg_advisory_xact_lock(_PROPOSING, study_id), engine):
        yield


@contextmanager
def _advisory_lock(url: str, lock: FunctionElement[None], engine: Engine | None = None) -> Iterator[None]:
    if not is_postgresql(url):
        yield
        return
    engine = engine or sqlalchemy.create_engine(url, poolclass=NullPool, **_engine_arguments(url))
    with engine.begin() as connection:
        # Given back with the transaction, also when this process is killed in it.
        connection.execute(select(lock))
        yield


def connect(url: str, *, read_only: bool = False) -> RDBStorage:
    """Return Optuna's storage at an address.

    Raises:
        StorageError: it is to be read, and is not there, or of a version that cannot be read; or its tables are those
            of another version of Optuna's.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if read_only:
        _check_studies(url)
    try:
        storage = _optuna(url, read_only=read_only)
    except RuntimeError as error:
        # It says so, and gives the address with its password, and a command of its own.
        revisions = optuna_revisions(url)
        raise (older_optuna(url, revisions[0]) if revisions else error) from error
    if sqlite_path(url) is not None:
        sqlalchemy.event.listen(storage.engine, "connect", _without_syncs)
        storage.engine.dispose()  # the connections that were made before
    return storage


def optuna_revisions(url: str) -> tuple[str, str] | None:
    """Return the revision of Optuna's tables, and the one that the installed Optuna uses; None where there are none.

    Raises:
        StorageError: the installed Optuna does not know theirs.
    """
    engine = tables_engine(url)
    try:
        if not sqlalchemy.inspect(engine).has_table(_REVISIONS):
            return None
    finally:
        engine.dispose()
    storage = _optuna(url, read_only=True, any_version=True)
    try:
        found, known = storage.get_current_version(), storage.get_all_versions()
        if found not in known:
            raise newer_optuna(url, found)
        return found, storage.get_head_version()
    finally:
        storage.engine.dispose()


def upgrade_optuna(url: str) -> None:
    """Bring Optuna's tables up to date, in as many transactions as it has steps."""
    storage = _optuna(url, read_only=False, any_version=True)
    try:
        storage.upgrade()
    finally:
        storage.engine.dispose()


@contextmanager
def changing(url: str) -> Iterator[Connection]:
    """Provide a transaction for changes of tables, too: all of them or, whatever happens, none. Others wait for it."""
    engine = sqlalchemy.create_engine(url, poolclass=NullPool, **_engine_arguments(url))
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


def log_engine(url: str, storage: RDBStorage) -> Engine:
    """Return the engine for what must be on disk whatever happens, beside a storage: its commits wait for the disk."""
    return storage.engine if sqlite_path(url) is None else sqlalchemy.create_engine(url, **_engine_arguments(url))


def _without_syncs(connection: sqlite3.Connection, record: object) -> None:
    """Let commits return before the disk has them.

    A killed process loses nothing by that. When the machine itself goes down, the newest commits are lost, and the file
    is as it was before them (https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL with a write-ahead log). A
    commit of the log engine puts all that were before it on disk, too: they are in the same log.
    """
    del record
    connection.execute("PRAGMA synchronous=NORMAL")


def tables_engine(url: str) -> Engine:
    """Return an engine that reads a storage, whoever made it and whatever tables it has.

    Raises:
        StorageError: it is a file that is not there.
    """
    return sqlalchemy.create_engine(_readable(url), **_engine_arguments(url, read_only=True))


@contextmanager
def storage_errors(url: str) -> Iterator[None]:
    """Turn whatever a storage refuses into a `StorageError` that says what to do."""
    try:
        yield
    except (
        sqlalchemy.exc.SQLAlchemyError,
        sqlite3.Error,
        optuna.exceptions.StorageInternalError,
    ) as error:
        cause = error.__cause__ or error
        reason = str(getattr(cause, "orig", None) or cause).splitlines()[0]
        ask = "disk full? read-only? another program's file?"
        if sqlite_path(url) is None:
            ask = "is the server there? does it know this user, the password and the database?"
        msg = (
            f"storage {shown(url)} cannot be used: {reason}; what was finished before is safe, "
            f"mend it ({ask}) and use the same command again"
        )
        raise StorageError(msg) from error
    except ImportError as error:
        package = "'psycopg[binary]'" if is_postgresql(url) else "the driver that the address names"
        msg = (
            f"storage {shown(url)} cannot be used: the driver for it is not installed ({error.__cause__ or error}); "
            f"install it: {sys.executable} -m pip install {package}"
        )
        raise StorageError(msg) from error


def _check_studies(url: str) -> None:
    engine = tables_engine(url)
    try:
        with engine.connect() as connection:
            known_version(connection, url)
            if sqlalchemy.inspect(connection).has_table(_STUDIES):
                return
    finally:
        engine.dispose()
    msg = (
        f"no studies in {shown(url)}; `autotune study` makes them, --storage or AUTOTUNE_STORAGE names another storage"
    )
    raise StorageError(msg)


def _optuna(url: str, *, read_only: bool, any_version: bool = False) -> RDBStorage:
    address = _readable(url) if read_only else url
    # Optuna formats the address.
    template = address.replace("{", "{{").replace("}", "}}")
    arguments = _engine_arguments(url, read_only=read_only)
    return RDBStorage(
        template,
        engine_kwargs=arguments,
        skip_compatibility_check=any_version,
        skip_table_creation=read_only or any_version,
    )


def _engine_arguments(url: str, *, read_only: bool = False) -> dict[str, object]:
    if sqlite_path(url) is not None:
        return {"connect_args": {"timeout": _BUSY_TIMEOUT_S}}
    if not is_postgresql(url):
        return {"pool_pre_ping": True}
    return {
        "pool_pre_ping": True,
        "connect_args": {"connect_timeout": _CONNECT_TIMEOUT_S},
        "execution_options": {"postgresql_readonly": True} if read_only else {},
    }


def _readable(url: str) -> str:
    path = sqlite_path(url)
    if path is None:
        return url
    if not path.is_file():
        msg = f"no storage at {path}; `autotune study` makes it, --storage or AUTOTUNE_STORAGE names another"
        raise StorageError(msg)
    return f"sqlite:///file:{path.absolute()}?mode=ro&uri=true"
