"""Optuna's own storage: opened, and refused where its tables are of another version."""

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
    make_read_only,
    prepare_sqlite,
    readable_address,
    setup_lock,
    tables_engine,
    writable_address,
    write_transaction,
)
from autotune.storage.schema import check_studies, known_version, other_optuna, write_version
from autotune.storage.sqlite.file import close_at_exit


def connect(url: str, *, read_only: bool = False) -> RDBStorage:
    """Return Optuna's storage at an address.

    Raises:
        StorageError: it is to be read, and is not there, or of a version that cannot be read; or its tables are those
            of another version of Optuna's.
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
    storage = _open_optuna(url, read_only=read_only, any_version=is_current, skip_tables=read_only)
    if sqlite_path(url) is not None:
        sqlalchemy.event.listen(storage.engine, "connect", make_read_only if read_only else _skip_syncs)
        storage.engine.dispose()  # the connections that were made before
        if not read_only:
            close_at_exit(storage.engine)
    return storage


def open_for_writing(url: str, make_tables: Callable[[Connection], None]) -> RDBStorage:
    """Open a storage for writing, and make what is not there.

    Raises:
        StorageError: it is of another version than this autotune's, or has the tables of another Optuna.
    """
    path = sqlite_path(url)
    if path is None or path.exists():
        _check_version(url)
        check_optuna(url)
    prepare_sqlite(url)
    with setup_lock(url):
        storage = connect(url)
        with write_transaction(url) as connection:
            # Another process may have made it meanwhile.
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
    """Return whether a storage has the tables of the installed Optuna; False where it has none yet.

    Raises:
        StorageError: it has the tables of another Optuna.
    """
    path = sqlite_path(url)
    return (path is None or path.exists()) and optuna_revision(url) is not None


def optuna_revision(url: str) -> str | None:
    """Return the revision of Optuna's tables, which is that of the installed Optuna; None where there are none.

    Raises:
        StorageError: it is that of another Optuna.
    """
    engine = tables_engine(url)
    try:
        with engine.connect() as connection:
            found = MigrationContext.configure(connection).get_current_revision()
    finally:
        engine.dispose()
    # Optuna writes it where who made the tables was killed before.
    known = _known_revisions()
    if found is None or found == known[0]:
        return found
    raise other_optuna(url, found, known=found in known)


@cache
def _known_revisions() -> tuple[str, ...]:
    """Return the revisions that the installed Optuna knows, the newest first.

    Optuna loads every step between them when it opens a storage, and again when it is asked: here that is done once.
    """
    steps = ScriptDirectory(str(files("optuna.storages._rdb") / "alembic"))
    return tuple(step.revision for step in steps.walk_revisions())


def log_engine(url: str, storage: RDBStorage) -> Engine:
    """Return the engine for what must be on disk whatever happens, beside a storage: its commits wait for the disk."""
    if sqlite_path(url) is None:
        return storage.engine
    engine = sqlalchemy.create_engine(writable_address(url), **engine_arguments(url))
    close_at_exit(engine)
    return engine


def _skip_syncs(connection: sqlite3.Connection, record: object) -> None:
    """Let commits return before the disk has them.

    A killed process loses nothing by that. When the machine itself goes down, the newest commits are lost, and the file
    is as it was before them (https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL with a write-ahead log). A
    commit of the log engine puts all that were before it on disk, too: they are in the same log.
    """
    del record
    connection.execute("PRAGMA synchronous=NORMAL")


def _open_optuna(url: str, *, read_only: bool, any_version: bool, skip_tables: bool) -> RDBStorage:
    address = readable_address(url) if read_only else writable_address(url)
    # Optuna formats the address.
    template = address.replace("{", "{{").replace("}", "}}")
    arguments = engine_arguments(url, read_only=read_only)
    return RDBStorage(
        template,
        engine_kwargs=arguments,
        skip_compatibility_check=any_version,
        skip_table_creation=skip_tables,
    )
