"""Imported measurements, in a table beside Optuna's tables and the log of runs.

A row holds one configuration in one setting of one source. Importing a measurement again changes nothing, even under
another source. Importing it with more repeats replaces the row.
"""

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import sqlalchemy
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
    update,
)

from autotune.errors import StorageError
from autotune.records.measurement import Measured
from autotune.storage.address import hide_password
from autotune.storage.columns import Record
from autotune.storage.connection import storage_errors, tables_engine
from autotune.storage.optuna_storage import open_for_writing
from autotune.storage.schema import has_studies, known_version

_METADATA = MetaData()
MEASUREMENTS = Table(
    "autotune_measurements",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("program", Text, nullable=False),
    Column("digest", String(64), nullable=False, unique=True),
    Column("record", Record, nullable=False),
)


@dataclass(frozen=True)
class Added:
    """The result of an import.

    Attributes:
        new: The number of measurements that were added.
        changed: The number of measurements that replaced older ones.
        same: The number of measurements that the storage had already.
        sources: The other sources under which the storage had some of them.
    """

    new: int = 0
    changed: int = 0
    same: int = 0
    sources: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceRow:
    """The number of measurements of one program from one source."""

    source: str
    program: str
    rows: int


class MeasurementStore:
    """The imported measurements of one storage."""

    def __init__(self, url: str, engine: Engine) -> None:
        """Wrap an open storage; use `create` or `read`."""
        self._url = url
        self._engine = engine

    @classmethod
    def create(cls, url: str) -> Self:
        """Open a storage for writing; create it if it is missing.

        Raises:
            StorageError: The storage cannot be used.
        """
        with storage_errors(url):
            return cls(url, open_for_writing(url, _METADATA.create_all).engine)

    @classmethod
    def read(cls, url: str) -> Self:
        """Open any storage for reading, also one without imported measurements or of another program.

        Raises:
            StorageError: The file does not exist, or its version cannot be read.
        """
        with storage_errors(url):
            engine = tables_engine(url)
            with engine.connect() as connection:
                known_version(connection, url)
            return cls(url, engine)

    def add(self, measured: Iterable[Measured]) -> Added:
        """Store measurements, all or none of them.

        Raises:
            StorageError: The storage cannot be written.
        """
        given = {_digest(one): one for one in measured}
        with storage_errors(self._url), self._engine.begin() as connection:
            sources = {one.setting.source for one in given.values()}
            wanted = select(MEASUREMENTS.c.digest, MEASUREMENTS.c.record)
            known = {
                str(row.digest): row.record
                for source in sorted(sources)
                for row in connection.execute(wanted.where(MEASUREMENTS.c.source == source))
            }
            records = {digest: _as_stored(one) for digest, one in given.items()}
            elsewhere = {
                row.content: row.setting.source
                for row in self._measurements_of(connection, sorted({one.setting.program for one in given.values()}))
            }
            twice = {digest for digest, one in given.items() if digest not in known and one.content in elsewhere}
            new = [digest for digest in given if digest not in known and digest not in twice]
            changed = [digest for digest in given if digest in known and known[digest] != records[digest]]
            if new:
                rows = [_row(given[digest]) | {"digest": digest, "record": records[digest]} for digest in new]
                connection.execute(insert(MEASUREMENTS), rows)
            for digest in changed:
                there = update(MEASUREMENTS).where(MEASUREMENTS.c.digest == digest)
                connection.execute(there.values(record=records[digest]))
        others = tuple(dict.fromkeys(elsewhere[given[digest].content] for digest in given if digest in twice))
        return Added(len(new), len(changed), len(given) - len(new) - len(changed), others)

    def _measurements_of(self, connection: Connection, programs: list[str]) -> list[Measured]:
        """Return the stored measurements of programs; skip those that cannot be read."""
        wanted = select(MEASUREMENTS.c.record).where(MEASUREMENTS.c.program.in_(programs))
        kept = []
        for record in connection.scalars(wanted):
            with suppress(ValueError):
                kept.append(Measured.from_dict(record))
        return kept

    def remove(self, source: str) -> int:
        """Remove all measurements of a source; return their number.

        Raises:
            StorageError: The storage cannot be written.
        """
        with storage_errors(self._url), self._engine.begin() as connection:
            return connection.execute(delete(MEASUREMENTS).where(MEASUREMENTS.c.source == source)).rowcount

    def measurements(self, program: str | None = None) -> list[Measured]:
        """Return the measurements of one program or of all, in the order of their import.

        Raises:
            StorageError: the storage cannot be read.
        """
        wanted = select(MEASUREMENTS.c.record).order_by(MEASUREMENTS.c.id)
        if program is not None:
            wanted = wanted.where(MEASUREMENTS.c.program == program)
        with storage_errors(self._url), self._engine.connect() as connection:
            if not self._has(MEASUREMENTS.name):
                return []
            records = list(connection.scalars(wanted))
        try:
            return [Measured.from_dict(record) for record in records]
        except ValueError as error:
            msg = (
                f"imported measurements in {hide_password(self._url)} are not as this version writes them ({error!r}): "
                "remove them with `autotune storage import --remove SOURCE`, and import them again"
            )
            raise StorageError(msg) from error

    def sources(self) -> list[SourceRow]:
        """Return the number of measurements of each source and program, sorted by name.

        Raises:
            StorageError: the storage cannot be read.
        """
        columns = (MEASUREMENTS.c.source, MEASUREMENTS.c.program)
        wanted = select(*columns, func.count()).group_by(*columns).order_by(*columns)
        with storage_errors(self._url), self._engine.connect() as connection:
            if not self._has(MEASUREMENTS.name):
                return []
            return [SourceRow(str(source), str(program), rows) for source, program, rows in connection.execute(wanted)]

    def has_studies(self) -> bool:
        """Return whether the storage also has Optuna's tables.

        Raises:
            StorageError: the storage cannot be read.
        """
        with storage_errors(self._url), self._engine.connect() as connection:
            return has_studies(connection)

    def _has(self, table: str) -> bool:
        return sqlalchemy.inspect(self._engine).has_table(table)


def _digest(one: Measured) -> str:
    """Return a digest of a measurement's source, setting and configuration, but not of its values."""
    about: list[object] = [one.setting.source, *one.setting.key, sorted(one.configuration.items())]
    if one.setting.built:
        about.append(one.setting.built)
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()


def _as_stored(one: Measured) -> dict[str, Any]:
    """Return the record as storage returns it, so that the two can be compared."""
    found: dict[str, Any] = json.loads(json.dumps(one.to_dict()))
    return found


def _row(one: Measured) -> dict[str, Any]:
    return {"source": one.setting.source, "program": one.setting.program}
