"""Version 1: records in PostgreSQL are texts; they were of its type JSON, which knows neither NaN nor infinity.

The text is what was stored, character by character.
"""

import sqlalchemy as sa

from autotune.storage.migration import Migration

_TABLES = ("autotune_runs", "autotune_measurements")


def _old(connection: sa.Connection) -> list[str]:
    if connection.dialect.name != "postgresql":
        return []
    there = sa.inspect(connection)
    columns = {name: there.get_columns(name) for name in _TABLES if there.has_table(name)}
    return [
        name
        for name, known in columns.items()
        if any(one["name"] == "record" and isinstance(one["type"], sa.JSON) for one in known)
    ]


def _needed(connection: sa.Connection) -> bool:
    return bool(_old(connection))


def _apply(connection: sa.Connection) -> None:
    for name in _old(connection):
        connection.execute(sa.text(f"ALTER TABLE {name} ALTER COLUMN record TYPE TEXT USING record::text"))


TEXTS = Migration("records of PostgreSQL's type JSON", _needed, _apply)
