"""The PostgreSQL database of a session: one at a time, empty when the session begins."""

import os
import time

# Environment variable: the address of a PostgreSQL server, without a database.
SERVER = "AUTOTUNE_FAULTS_SERVER"
NAME = "mine"
_PATIENCE_S = 60.0
_PAUSE_S = 0.05


def url() -> str:
    """Return the address of the database."""
    return f"{os.environ[SERVER]}/{NAME}"


def make_empty() -> None:
    """Drop the database and create it again."""
    _execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)", f"CREATE DATABASE {NAME}")


def wait() -> None:
    """Wait until the server answers, which may be recovering."""
    import psycopg

    give_up_at = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _execute("SELECT 1")
        except psycopg.OperationalError:
            if time.monotonic() >= give_up_at:
                raise
            time.sleep(_PAUSE_S)


def _execute(*statements: str) -> None:
    import psycopg

    with psycopg.connect(f"{os.environ[SERVER].replace('+psycopg', '')}/postgres", autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
