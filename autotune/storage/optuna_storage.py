"""Opening Optuna's storage for reading or writing, and refusing tables of another version."""

import re
import sqlite3
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import optuna
import sqlalchemy
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from sqlalchemy import Connection, Engine, func, insert, select

from autotune.storage.address import is_postgresql, sqlite_path
from autotune.storage.connection import (
    engine_arguments,
    guard_file,
    prepare_sqlite,
    readable_address,
    reading_connection,
    writable_address,
    write_transaction,
    writing_engine,
)
from autotune.storage.schema import REVISIONS, check_studies, known_version, other_optuna, write_version

# The lines `revision = "v3.2.0.a"` and `down_revision = "v3.0.0.d"` of a migration; the first has `None`.
_REVISION = re.compile(r'^(revision|down_revision)(?:: [^=]+)? = ["\']([^"\']+)["\']$', re.MULTILINE)
_SET_UP = 0x6175746F74756E65  # "autotune", in ASCII


def open_for_reading(url: str) -> RDBStorage:
    """Open Optuna's storage at an address for reading.

    Raises:
        StorageError: It does not exist, has no studies, or has tables of another version of autotune or Optuna.
    """
    with reading_connection(url) as connection:
        check_studies(connection, url)
    check_optuna(url)
    return _open(readable_address(url), engine_arguments(url, read_only=True))


def open_for_writing(url: str, make_tables: Callable[[Connection], None]) -> RDBStorage:
    """Open a storage for writing; create the missing tables, Optuna's and autotune's, in one transaction.

    Raises:
        StorageError: Another version of autotune or of Optuna made its tables.
    """
    path = sqlite_path(url)
    if path is None or path.exists():
        with reading_connection(url) as connection:
            known_version(connection, url)
        check_optuna(url)
    held = prepare_sqlite(url)
    with write_transaction(url) as connection:
        if is_postgresql(url):
            # Of two processes that create the same table, one would fail. The transaction's end releases the lock.
            connection.execute(select(func.pg_advisory_xact_lock(_SET_UP)))
        # Another process may have created the tables meanwhile. In this order a process that is killed between two
        # tables leaves a storage that counts as empty, also on a server that commits each table (MySQL).
        if known_version(connection, url) is None:
            write_version(connection)
        make_tables(connection)
        _make_optuna_tables(connection)
    storage = _open(writable_address(url), engine_arguments(url))
    if held is not None:
        sqlalchemy.event.listen(storage.engine, "connect", _skip_syncs)
        storage.engine.dispose()  # connections that were opened before the listener
        guard_file(storage.engine, held)
    return storage


def _open(address: str, arguments: dict[str, object]) -> RDBStorage:
    """Open a storage whose tables exist."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return RDBStorage(
        address.replace("{", "{{").replace("}", "}}"),  # Optuna calls `format` on it
        engine_kwargs=arguments,
        skip_compatibility_check=True,
        skip_table_creation=True,
    )


def _make_optuna_tables(connection: Connection) -> None:
    """Create Optuna's missing tables, and their revision last; Optuna itself uses several transactions."""
    models.BaseModel.metadata.create_all(connection)
    if connection.execute(select(models.VersionInfoModel.__table__)).first() is None:
        row = {"schema_version": models.SCHEMA_VERSION, "library_version": optuna.__version__}
        connection.execute(insert(models.VersionInfoModel).values(row))
    REVISIONS.create(connection, checkfirst=True)
    if connection.execute(select(REVISIONS)).first() is None:
        connection.execute(insert(REVISIONS).values(version_num=_newest_revision()))


def check_optuna(url: str) -> None:
    """Check that Optuna's tables are those of the installed Optuna, if a storage has any.

    Raises:
        StorageError: Another version of Optuna made them.
    """
    optuna_revision(url)


def optuna_revision(url: str) -> str | None:
    """Return the revision of Optuna's tables, which must be the installed Optuna's; None without tables.

    Raises:
        StorageError: Another version of Optuna made the tables.
    """
    with reading_connection(url) as connection:
        there = sqlalchemy.inspect(connection).has_table(REVISIONS.name)
        found: str | None = connection.scalar(select(REVISIONS)) if there else None
    if found is None or found == _newest_revision():
        return found
    raise other_optuna(url, found, known=found in _revisions())


def _newest_revision() -> str:
    """Return the revision of the installed Optuna's tables: the one that no other follows."""
    found = _revisions()
    (newest,) = found.keys() - found.values()
    return newest


@cache
def _revisions() -> dict[str, str | None]:
    """Return all revisions of the installed Optuna's tables, each with the one before.

    They are read as Alembic, which Optuna uses, would read them. It takes longer to import than to create a storage.
    """
    found = {}
    for path in (files("optuna.storages._rdb") / "alembic" / "versions").iterdir():
        if path.name.endswith(".py"):
            values = dict(_REVISION.findall(path.read_text(encoding="utf-8")))
            found[values["revision"]] = values.get("down_revision")
    return found


def log_engine(url: str, storage: RDBStorage) -> Engine:
    """Return an engine whose commits wait for the disk, for data that must survive a crash of the machine."""
    if sqlite_path(url) is None:
        return storage.engine
    return writing_engine(url)


def _skip_syncs(connection: sqlite3.Connection, record: object) -> None:
    """Let commits return before they are on disk.

    A killed process loses nothing. A crash of the machine loses the newest commits, and the file stays consistent
    (https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL with a write-ahead log). A commit of the log engine
    also puts all earlier commits on disk, since they share one log.
    """
    del record
    connection.execute("PRAGMA synchronous=NORMAL")
