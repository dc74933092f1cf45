"""Opening Optuna's storage for reading or writing, and refusing tables of another version."""

import sqlite3
from collections.abc import Callable
from functools import cache
from importlib.resources import files

import optuna
import sqlalchemy
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from optuna.storages import RDBStorage
from sqlalchemy import Connection, Engine

from autotune.storage.address import sqlite_path
from autotune.storage.connection import (
    engine_arguments,
    guard_file,
    make_read_only,
    prepare_sqlite,
    readable_address,
    setup_lock,
    tables_engine,
    writable_address,
    write_transaction,
    writing_engine,
)
from autotune.storage.schema import check_studies, known_version, other_optuna, write_version


def connect(url: str, *, read_only: bool = False) -> RDBStorage:
    """Return Optuna's storage at an address.

    Raises:
        StorageError: Another version of Optuna made its tables; or, for reading, the storage does not exist or its
            version cannot be read.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if read_only:
        engine = tables_engine(url)
        try:
            with engine.connect() as connection:
                check_studies(connection, url)
        finally:
            engine.dispose()
    is_current = check_optuna(url)
    held = None if read_only else prepare_sqlite(url)
    address = readable_address(url) if read_only else writable_address(url)
    storage = RDBStorage(
        address.replace("{", "{{").replace("}", "}}"),  # Optuna calls `format` on it
        engine_kwargs=engine_arguments(url, read_only=read_only),
        skip_compatibility_check=is_current,
        skip_table_creation=read_only,
    )
    if sqlite_path(url) is not None:
        sqlalchemy.event.listen(storage.engine, "connect", make_read_only if read_only else _skip_syncs)
        storage.engine.dispose()  # connections that were opened before the listener
    if held is not None:
        guard_file(storage.engine, held)
    return storage


def open_for_writing(url: str, make_tables: Callable[[Connection], None]) -> RDBStorage:
    """Open a storage for writing; create the missing tables, autotune's own in one transaction.

    Raises:
        StorageError: Another version of autotune or of Optuna made its tables.
    """
    path = sqlite_path(url)
    if path is None or path.exists():
        _check_version(url)
        check_optuna(url)
    with setup_lock(url):
        storage = connect(url)
        with write_transaction(url) as connection:
            # Another process may have created the tables meanwhile.
            version = known_version(connection, url)
            make_tables(connection)
            if version is None:
                write_version(connection)
    return storage


def _check_version(url: str) -> None:
    engine = tables_engine(url)
    try:
        with engine.connect() as connection:
            known_version(connection, url)
    finally:
        engine.dispose()


def check_optuna(url: str) -> bool:
    """Return whether a storage has the installed Optuna's tables; False if it has none yet.

    Raises:
        StorageError: Another version of Optuna made its tables.
    """
    path = sqlite_path(url)
    return (path is None or path.exists()) and optuna_revision(url) is not None


def optuna_revision(url: str) -> str | None:
    """Return the revision of Optuna's tables, which must be the installed Optuna's; None without tables.

    Raises:
        StorageError: Another version of Optuna made the tables.
    """
    engine = tables_engine(url)
    try:
        with engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()
    # None: the process that created the tables was killed before it wrote the revision. Optuna writes it now.
    known = _revisions_of_optuna()
    if found is None or found == known[0]:
        return found
    raise other_optuna(url, found, known=found in known)


@cache
def _revisions_of_optuna() -> tuple[str, ...]:
    """Return the revisions that the installed Optuna knows, newest first.

    Cached, because Optuna loads every migration script to list them.
    """
    steps = ScriptDirectory(str(files("optuna.storages._rdb") / "alembic"))
    return tuple(step.revision for step in steps.walk_revisions())


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
