"""Optuna's own storage: opened, brought up to date, and refused where its tables are of another version."""

import sqlite3

import optuna
import sqlalchemy
from optuna.storages import RDBStorage
from sqlalchemy import Engine

from autotune.storage.address import sqlite_path
from autotune.storage.connection import engine_arguments, only_read, readable_address, tables_engine, writable_address
from autotune.storage.schema import check_studies, newer_optuna, older_optuna
from autotune.storage.sqlite.file import note_writing

_REVISIONS = "alembic_version"  # a table of Optuna's


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
    try:
        storage = _optuna(url, read_only=read_only)
    except RuntimeError as error:
        # It says so, and gives the address with its password, and a command of its own.
        revisions = optuna_revisions(url)
        raise (older_optuna(url, revisions[0]) if revisions else error) from error
    if sqlite_path(url) is not None:
        sqlalchemy.event.listen(storage.engine, "connect", only_read if read_only else _without_syncs)
        storage.engine.dispose()  # the connections that were made before
        if not read_only:
            note_writing(storage.engine)
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


def log_engine(url: str, storage: RDBStorage) -> Engine:
    """Return the engine for what must be on disk whatever happens, beside a storage: its commits wait for the disk."""
    if sqlite_path(url) is None:
        return storage.engine
    engine = sqlalchemy.create_engine(writable_address(url), **engine_arguments(url))
    note_writing(engine)
    return engine


def _without_syncs(connection: sqlite3.Connection, record: object) -> None:
    """Let commits return before the disk has them.

    A killed process loses nothing by that. When the machine itself goes down, the newest commits are lost, and the file
    is as it was before them (https://www.sqlite.org/pragma.html#pragma_synchronous, NORMAL with a write-ahead log). A
    commit of the log engine puts all that were before it on disk, too: they are in the same log.
    """
    del record
    connection.execute("PRAGMA synchronous=NORMAL")


def _optuna(url: str, *, read_only: bool, any_version: bool = False) -> RDBStorage:
    address = readable_address(url) if read_only else writable_address(url)
    # Optuna formats the address.
    template = address.replace("{", "{{").replace("}", "}}")
    arguments = engine_arguments(url, read_only=read_only)
    return RDBStorage(
        template,
        engine_kwargs=arguments,
        skip_compatibility_check=any_version,
        skip_table_creation=read_only or any_version,
    )
