"""Leases: the runs of a study that are in flight, each with its batch job or the client that makes it.

A lease is a row in a table beside the log of runs. A session writes it before a run starts and removes it in the
transaction that stores the run. So the next session finds the runs that a killed session had in flight.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import sqlalchemy as sa

from autotune.storage.columns import Record
from autotune.storage.connection import Patience, storage_errors

_METADATA = sa.MetaData()
# Only the locks of sessions (`server_lock`) use `holder` and `heartbeat_s`; their `study` is SESSIONS.
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
"""Raises an error inside a session's transaction if the session no longer holds the study."""


def no_fence(_: sa.Connection) -> None:
    """Allow every write: a session that holds a lock file cannot lose it."""


@dataclass(frozen=True)
class Lease:
    """A run in flight.

    Attributes:
        place: The name of the run's folder, unique in its study.
        record: The data that a later session needs to collect the run.
        job_id: The batch system's id of the job; None before its submission, or for a run without a job.
    """

    place: str
    record: Mapping[str, Any]
    job_id: str | None = None


NewLease = tuple[Mapping[str, Any], str | None]
"""The record of a run that is about to start, and its job id if it is known."""


class LeaseBook(Protocol):
    """The leases of one study. A change is stored when its method returns."""

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs by place, all at once; replace an older lease of a place."""

    def note_job(self, place: str, job_id: str) -> None:
        """Store the job id of a run."""

    def release(self, place: str) -> None:
        """Remove the lease of a run that is stored or will not be made."""

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""


class SqlLeaseBook:
    """Keeps the leases of one study in a table of its storage."""

    def __init__(
        self, url: str, engine: sa.Engine, study: str, patience: Patience | None = None, fence: Fence = no_fence
    ) -> None:
        """Use the table that `create_table` made at an address, for the study with this key."""
        self._url = url
        self._patience = patience or Patience()
        self._engine = engine
        self._study = study
        self._fence = fence

    @staticmethod
    def create_table(where: sa.Engine | sa.Connection) -> None:
        """Create the table if it is missing."""
        _METADATA.create_all(where)

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs in one transaction."""
        own: dict[str, Any] = {"study": self._study, "holder": "", "heartbeat_s": 0.0}
        rows = [own | {"place": place, "job": job, "record": dict(record)} for place, (record, job) in runs.items()]
        if rows:
            self._write(sa.delete(LEASES).where(*self._of(*runs)), rows)

    def note_job(self, place: str, job_id: str) -> None:
        """Store the job id of a run."""
        self._write(sa.update(LEASES).where(*self._of(place)).values(job=job_id))

    def release(self, place: str) -> None:
        """Remove the lease of a run."""
        self._write(sa.delete(LEASES).where(*self._of(place)))

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""
        return self._patience(self._all)

    def _all(self) -> list[Lease]:
        with storage_errors(self._url), self._engine.connect() as connection:
            rows = connection.execute(sa.select(LEASES).where(LEASES.c.study == self._study)).all()
        # Rows whose place has a colon belong to no run.
        rows = [row for row in rows if ":" not in row.place]
        # Sorted here, since a database's order depends on its locale.
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
    """Keeps leases in memory, for simulations."""

    def __init__(self) -> None:
        """Start empty."""
        self._leases: dict[str, Lease] = {}

    def take(self, runs: Mapping[str, NewLease]) -> None:
        """Store the leases of runs."""
        self._leases.update((place, Lease(place, dict(record), job)) for place, (record, job) in runs.items())

    def note_job(self, place: str, job_id: str) -> None:
        """Store the job id of a run."""
        if place in self._leases:
            self._leases[place] = replace(self._leases[place], job_id=job_id)

    def release(self, place: str) -> None:
        """Remove the lease of a run."""
        self._leases.pop(place, None)

    def all(self) -> list[Lease]:
        """Return every lease, by place."""
        return [lease for _, lease in sorted(self._leases.items())]


def remove_leases(connection: sa.Connection, study: str, places: Collection[str]) -> None:
    """Remove the leases of runs in the transaction that stores the runs."""
    if places:
        connection.execute(sa.delete(LEASES).where(LEASES.c.study == study, LEASES.c.place.in_(places)))
