"""Storages that are opened for writing: one that is not there is made, its own tables in one transaction."""

from collections.abc import Callable

from optuna.storages import RDBStorage
from sqlalchemy import Connection

from autotune.storage.address import sqlite_path
from autotune.storage.connection import changing, prepare_sqlite, set_up_alone, tables_engine
from autotune.storage.optuna_storage import check_optuna, connect
from autotune.storage.schema import known_version, write_version


def opened(url: str, make_tables: Callable[[Connection], None]) -> RDBStorage:
    """Open a storage for writing, and make what is not there.

    Raises:
        StorageError: it is of another version than this autotune's, or has the tables of another Optuna.
    """
    path = sqlite_path(url)
    if path is None or path.exists():
        _check_version(url)
        check_optuna(url)
    prepare_sqlite(url)
    with set_up_alone(url):
        storage = connect(url)
        with changing(url) as connection:
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
