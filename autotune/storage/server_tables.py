"""Tables of a storage on a server, read by statements."""

from typing import Any

import sqlalchemy as sa

from autotune.storage.connection import storage_errors, tables_engine


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
            return frozenset(sa.inspect(self._engine).get_table_names())

    def rows(self, statement: str, **values: object) -> list[Any]:
        """Return the rows that a statement asks for."""
        with storage_errors(self._url), self._engine.connect() as connection:
            return list(connection.execute(sa.text(statement), values))
