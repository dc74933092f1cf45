"""Leases: which runs are in flight, who looks after each, and which job of a batch system it is.

A row in a table beside the log of runs, a run. Several coordinators of one study tell each other so; a coordinator that
starts reads what another, or itself before it was killed, had in flight. Ages go by the database's clock: hosts differ.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from autotune.storage.columns import Record
from autotune.storage.connection import Patience, storage_errors

_METADATA = sa.MetaData()
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


@dataclass(frozen=True)
class Lease:
    """A run in flight.

    `place` is the name of its folder, of which a study has one a run; `holder` the coordinator that looks after it;
    `job_id` the batch system's name for it, None before it was submitted, or for a local one; `record` what is needed
    to collect it; `age_s` how long ago its holder last said that it lives.
    """

    place: str
    holder: str
    record: Mapping[str, Any]
    job_id: str | None = None
    age_s: float = 0.0


Taking = tuple[Mapping[str, Any], str | None]
"""The record of a run that is taken, and its next job."""


class LeaseBook(Protocol):
    """The leases of one study, in the hands of one coordinator. What is written is safe when a method returns."""

    @property
    def stored_holder(self) -> str:
        """The coordinator as the run log knows it, which asks for its leases; empty if they are not beside the runs."""

    def take(self, place: str, record: Mapping[str, Any], job_id: str | None = None) -> bool:
        """Take a run, or an own one once more; its next job is `job_id`, None if that is not known yet.

        False if somebody else has it, dead or alive: a dead one's job may still run, so that is for `take_over`.
        """

    def take_all(self, runs: Mapping[str, Taking]) -> frozenset[str]:
        """Take runs by their places, as `take` does, together; return the places of those that are now own ones."""

    def note_job(self, place: str, job_id: str) -> bool:
        """Note the job of an own run; False if it is not, or no longer, an own one: then cancel the job."""

    def release(self, place: str) -> None:
        """Give an own run up: it is stored, or will not be run. One that is somebody else's stays."""

    def heartbeat(self) -> frozenset[str]:
        """Say that this coordinator lives; return the places of the runs that are still its own."""

    def take_over(self, place: str, holder: str, older_than_s: float) -> bool:
        """Take a run from `holder`, with its record and its job, if that one has been silent for so long.

        False if it has not, or if the run is meanwhile another's: of several that try, one succeeds.
        """

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""


class SqlLeaseBook:
    """Keeps the leases of one study in a table of its storage."""

    def __init__(self, engine: sa.Engine, study: str, holder: str, patience: Patience | None = None) -> None:
        """Use the storage behind `engine`, where `create_table` was called once, for the study of that key."""
        self._patience = patience or Patience()
        self._engine = engine
        self._study = study
        self._holder = holder
        self._now_s = _now_s(engine)
        self._url = engine.url.render_as_string(hide_password=False)

    @property
    def stored_holder(self) -> str:
        """The coordinator that has these leases."""
        return self._holder

    @staticmethod
    def create_table(where: sa.Engine | sa.Connection) -> None:
        """Make the table if it is not there."""
        _METADATA.create_all(where)

    def take(self, place: str, record: Mapping[str, Any], job_id: str | None = None) -> bool:
        """Take a run; False if somebody else has it."""
        return place in self.take_all({place: (record, job_id)})

    def take_all(self, runs: Mapping[str, Taking]) -> frozenset[str]:
        """Take runs in one transaction; return the places of those that are now own ones."""
        return self._patience(lambda: self._taken(runs)) if runs else frozenset()

    def _taken(self, runs: Mapping[str, Taking]) -> frozenset[str]:
        own: dict[str, Any] = {"study": self._study, "holder": self._holder}
        rows = [own | {"place": place, "job": job, "record": dict(record)} for place, (record, job) in runs.items()]
        with storage_errors(self._url):
            try:
                with self._engine.begin() as connection:
                    connection.execute(sa.insert(LEASES).values(heartbeat_s=self._now_s), rows)
            except IntegrityError:
                if len(runs) > 1:
                    each = (self._taken({place: run}) for place, run in runs.items())
                    return frozenset().union(*each)
                ((place, (record, job)),) = runs.items()
                # It is launched once more: the job that it had is not the one that it gets.
                is_own = self._changed(place, self._holder, record=dict(record), job=job, heartbeat_s=self._now_s)
                return frozenset(runs) if is_own else frozenset()
        return frozenset(runs)

    def note_job(self, place: str, job_id: str) -> bool:
        """Note the job of an own run; False if it is not an own one."""
        return self._change(place, self._holder, job=job_id, heartbeat_s=self._now_s)

    def release(self, place: str) -> None:
        """Give an own run up."""
        self._patience(lambda: self._released(place))

    def _released(self, place: str) -> None:
        with storage_errors(self._url), self._engine.begin() as connection:
            connection.execute(sa.delete(LEASES).where(*self._of(self._holder), LEASES.c.place == place))

    def heartbeat(self) -> frozenset[str]:
        """Say that this coordinator lives; return the places of its runs."""
        return self._patience(self._heard)

    def _heard(self) -> frozenset[str]:
        own = self._of(self._holder)
        with storage_errors(self._url), self._engine.begin() as connection:
            connection.execute(sa.update(LEASES).where(*own).values(heartbeat_s=self._now_s))
            return frozenset(connection.scalars(sa.select(LEASES.c.place).where(*own)))

    def take_over(self, place: str, holder: str, older_than_s: float) -> bool:
        """Take a run from a holder that has been silent for so long, 0 if it is dead; False if it has not."""
        # Who is known to be dead is not asked how long, by a clock that may have been put back since.
        silent = [self._now_s - LEASES.c.heartbeat_s >= older_than_s] if older_than_s else []
        tries = count()

        def taken_over() -> bool:
            values = {"holder": self._holder, "heartbeat_s": self._now_s}
            # If only the answer was lost, it is an own one by now.
            again = next(tries) > 0 and self._changed(place, self._holder, heartbeat_s=self._now_s)
            return again or self._changed(place, holder, *silent, **values)

        return self._patience(taken_over)

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""
        return self._patience(self._all)

    def _all(self) -> list[Lease]:
        wanted = sa.select(LEASES, (self._now_s - LEASES.c.heartbeat_s).label("age_s"))
        with storage_errors(self._url), self._engine.connect() as connection:
            rows = connection.execute(wanted.where(LEASES.c.study == self._study)).all()
        found = [Lease(row.place, row.holder, row.record, row.job, max(0.0, row.age_s)) for row in rows]
        # Not by the database, whose order depends on its locale.
        return sorted(found, key=lambda lease: lease.place)

    def _change(self, place: str, whose: str, /, **values: object) -> bool:
        return self._patience(lambda: self._changed(place, whose, **values))

    def _changed(self, place: str, whose: str, /, *also: sa.ColumnElement[bool], **values: object) -> bool:
        wanted = sa.update(LEASES).where(*self._of(whose), LEASES.c.place == place, *also)
        with storage_errors(self._url), self._engine.begin() as connection:
            return connection.execute(wanted.values(values)).rowcount == 1

    def _of(self, holder: str) -> tuple[sa.ColumnElement[bool], ...]:
        return (LEASES.c.study == self._study, LEASES.c.holder == holder)


class MemoryLeaseBook:
    """Keeps leases as long as the process lives, by a clock that is given: for simulations."""

    def __init__(self, holder: str, clock_s: Callable[[], float]) -> None:
        """Start empty; `seen_by` returns what another coordinator of the same study has in hands."""
        self._holder = holder
        self._clock_s = clock_s
        self._rows: dict[str, tuple[Lease, float]] = {}

    @property
    def stored_holder(self) -> str:
        """Nobody: no run log asks for these leases."""
        return ""

    def seen_by(self, holder: str) -> "MemoryLeaseBook":
        """Return the same leases in the hands of another coordinator."""
        other = MemoryLeaseBook(holder, self._clock_s)
        other._rows = self._rows
        return other

    def take(self, place: str, record: Mapping[str, Any], job_id: str | None = None) -> bool:
        """Take a run; False if somebody else has it."""
        old = self._rows[place][0] if place in self._rows else Lease(place, self._holder, {})
        return self._put(replace(old, record=dict(record), job_id=job_id))

    def take_all(self, runs: Mapping[str, Taking]) -> frozenset[str]:
        """Take runs; return the places of those that are now own ones."""
        return frozenset(place for place, (record, job) in runs.items() if self.take(place, record, job))

    def note_job(self, place: str, job_id: str) -> bool:
        """Note the job of an own run; False if it is not an own one."""
        return place in self._rows and self._put(replace(self._rows[place][0], job_id=job_id))

    def release(self, place: str) -> None:
        """Give an own run up."""
        if self._holds(place, self._holder):
            del self._rows[place]

    def heartbeat(self) -> frozenset[str]:
        """Say that this coordinator lives; return the places of its runs."""
        return frozenset(place for place, (lease, _) in self._rows.items() if self._put(lease))

    def take_over(self, place: str, holder: str, older_than_s: float) -> bool:
        """Take a run from a holder that has been silent for so long; False if it has not."""
        if not self._holds(place, holder):
            return False
        if older_than_s and self._clock_s() - self._rows[place][1] < older_than_s:
            return False
        return self._put(replace(self._rows[place][0], holder=self._holder))

    def all(self) -> list[Lease]:
        """Return every lease of the study, by place."""
        now_s = self._clock_s()
        return [replace(lease, age_s=max(0.0, now_s - seen_s)) for _, (lease, seen_s) in sorted(self._rows.items())]

    def _holds(self, place: str, holder: str) -> bool:
        return place in self._rows and self._rows[place][0].holder == holder

    def _put(self, lease: Lease) -> bool:
        if lease.holder == self._holder:
            self._rows[lease.place] = (lease, self._clock_s())
        return lease.holder == self._holder


def give_up(connection: sa.Connection, study: str, holder: str, places: Collection[str]) -> frozenset[str]:
    """Give up runs of `holder` with the transaction that stores them; return the places that it has no longer."""
    own = sa.delete(LEASES).where(LEASES.c.study == study, LEASES.c.holder == holder)
    return frozenset(place for place in places if connection.execute(own.where(LEASES.c.place == place)).rowcount == 0)


def _now_s(engine: sa.Engine) -> sa.ColumnElement[float]:
    """Return the database's clock, in seconds since 1970: that of the moment, not of the transaction's begin."""
    if engine.dialect.name == "sqlite":
        return (sa.func.julianday("now", type_=sa.Double) - 2440587.5) * 86400.0
    if engine.dialect.name == "postgresql":
        return sa.literal_column("CAST(extract(epoch FROM clock_timestamp()) AS double precision)", sa.Double)
    return sa.func.unix_timestamp(sa.func.now(6), type_=sa.Double)
