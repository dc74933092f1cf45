"""Leases: which runs of a study are in flight, and which job of a batch system, or which asking program, has each.

A lease is a row in a table beside the log of runs. A session writes it before a run starts and removes it in the
transaction that stores the run. So the next session finds what a killed one had in flight.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import sqlalchemy as sa

from autotune.storage.columns import Record
from autotune.storage.connection import Patience, storage_errors

_METADATA = sa.MetaData()
# `holder` and `heartbeat_s` are of rows that hold a study (`session_lease`), whose `study` is SESSIONS.
LEASES = sa.Table(
    "autotune_leases",
    _METADATA,
    sa.Column("study", sa.String(100), primary_key=True),
    sa.Column("place", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("job", sa.Text),
    sa.Column("heartbeat_s", sa.Double, nullable=False),
    sa.Column("record", Record, nullable=False),
)
SESSIONS = "sessions"

Fence = Callable[[sa.Connection], None]
"""Refuses, by an error, what a session writes in this transaction if it no longer holds the study."""


def no_fence(_: sa.Connection) -> None:
    """Let a session write whose lock nobody can take: that of a file."""


@dataclass(frozen=True)
class Lease:
    """A run in flight.

    `place` is the name of its folder, of which a study has one per run; `record` is what is needed to collect it;
    `job_id` is the batch system's name for it, None before it was submitted, or for a run without a job.
    """

    place: str
    record: Mapping[str, Any]
    job_id: str | None = None


NewLease = tuple[Mapping[str, Any], str | None]
"""The record of a run that is about to start, and its job, if that is known."""


class LeaseBook(Protocol):
    """The leases of one study. What is written is safe when a method returns."""

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs by their places, together; an older lease of a place is replaced."""

    def note_job(self, place: str, job_id: str) -> None:
        """Note the job of a run."""

    def release(self, place: str) -> None:
        """Give a run up: it is stored, or will not be made."""

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""


class SqlLeaseBook:
    """Keeps the leases of one study in a table of its storage."""

    def __init__(
        self, engine: sa.Engine, study: str, patience: Patience | None = None, fence: Fence = no_fence
    ) -> None:
        """Use the storage behind `engine`, where `create_table` was called once, for the study of that key."""
        self._patience = patience or Patience()
        self._engine = engine
        self._study = study
        self._fence = fence
        self._url = engine.url.render_as_string(hide_password=False)

    @staticmethod
    def create_table(where: sa.Engine | sa.Connection) -> None:
        """Make the table if it is not there."""
        _METADATA.create_all(where)

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs in one transaction."""
        own: dict[str, Any] = {"study": self._study, "holder": "", "heartbeat_s": 0.0}
        rows = [own | {"place": place, "job": job, "record": dict(record)} for place, (record, job) in runs.items()]
        if rows:
            self._write(sa.delete(LEASES).where(*self._of(*runs)), rows)

    def note_job(self, place: str, job_id: str) -> None:
        """Note the job of a run."""
        self._write(sa.update(LEASES).where(*self._of(place)).values(job=job_id))

    def release(self, place: str) -> None:
        """Give a run up."""
        self._write(sa.delete(LEASES).where(*self._of(place)))

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""
        return self._patience(self._all)

    def _all(self) -> list[Lease]:
        with storage_errors(self._url), self._engine.connect() as connection:
            rows = connection.execute(sa.select(LEASES).where(LEASES.c.study == self._study)).all()
        # A stored study may have rows that are of no run: their places have a colon.
        rows = [row for row in rows if ":" not in row.place]
        # Not ordered by the database, whose order depends on its locale.
        return sorted((Lease(row.place, row.record, row.job) for row in rows), key=lambda lease: lease.place)

    def _write(self, change: sa.Executable, rows: list[dict[str, Any]] | None = None) -> None:
        def written() -> None:
            with storage_errors(self._url), self._engine.begin() as connection:
                self._fence(connection)
                connection.execute(change)
                if rows:
                    connection.execute(sa.insert(LEASES), rows)

        self._patience(written)

    def _of(self, *places: str) -> tuple[sa.ColumnElement[bool], ...]:
        return (LEASES.c.study == self._study, LEASES.c.place.in_(places))


class MemoryLeaseBook:
    """Keeps leases as long as the process lives: for simulations."""

    def __init__(self) -> None:
        """Start empty."""
        self._leases: dict[str, Lease] = {}

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Keep the leases of runs."""
        self._leases.update((place, Lease(place, dict(record), job)) for place, (record, job) in runs.items())

    def note_job(self, place: str, job_id: str) -> None:
        """Note the job of a run."""
        if place in self._leases:
            self._leases[place] = replace(self._leases[place], job_id=job_id)

    def release(self, place: str) -> None:
        """Give a run up."""
        self._leases.pop(place, None)

    def all(self) -> list[Lease]:
        """Return every lease, by place."""
        return [lease for _, lease in sorted(self._leases.items())]


def remove_leases(connection: sa.Connection, study: str, places: Collection[str]) -> None:
    """Remove the leases of runs with the transaction that stores them."""
    if places:
        connection.execute(sa.delete(LEASES).where(LEASES.c.study == study, LEASES.c.place.in_(places)))
