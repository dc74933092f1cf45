"""The log of runs: a row for each run, beside Optuna's tables, which cannot change a finished trial."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from sqlalchemy import (
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    delete,
    func,
    insert,
    select,
    text,
)

from autotune.records.study import Run
from autotune.storage.columns import Record
from autotune.storage.connection import Patience
from autotune.storage.leases import (
    LEASES,
    SESSIONS,
    Fence,
    LeaseBook,
    MemoryLeaseBook,
    SqlLeaseBook,
    no_fence,
    remove_leases,
)
from autotune.storage.readable_study import MARK, stored_run, study_key

_METADATA = MetaData()
RUNS = Table(
    "autotune_runs",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("study", String(100), nullable=False, index=True),
    Column("trial", Integer),
    Column("series", String(200), nullable=False),
    Column("round", Integer, nullable=False),
    Column("record", Record, nullable=False),
    Column("digest", String(32)),
    UniqueConstraint("study", "digest", name="one_job_one_run"),
)
# Optuna's tables.
_STUDIES = text("SELECT study_id FROM studies")
_MARKS = text("SELECT study_id, value_json FROM study_user_attributes WHERE key = :key")
_DIGEST_BYTES = 16


def run_digest(run: Run) -> str | None:
    """Return a digest of a run's start time and folder; None if its start time is unknown.

    The digest keeps a job from being stored as two runs. A run that another program made has no folder, so its trial,
    series and round stand for that.
    """
    if not run.started:
        return None
    place = run.job.get("folder") or f"{run.trial} {run.series} {run.round}"
    return hashlib.blake2b(f"{run.started} {place}".encode(), digest_size=_DIGEST_BYTES).hexdigest()


def stored_keys(connection: Connection) -> Mapping[int, str]:
    """Return the keys of all studies in a storage, by study number."""
    marks = {study: json.loads(mark) for study, mark in connection.execute(_MARKS, {"key": MARK})}
    return {study: study_key(study, marks.get(study)) for study in connection.scalars(_STUDIES)}


def remove_deleted_studies(connection: Connection) -> None:
    """Remove the runs and leases of studies that another program deleted."""
    keys = [*stored_keys(connection).values(), SESSIONS]
    for table in (RUNS, LEASES):
        connection.execute(delete(table).where(table.c.study.not_in(keys)))


class RunLog(Protocol):
    """Keeps runs in the order in which they ended."""

    def extend(self, runs: Sequence[Run], places: Sequence[str] = ()) -> None:
        """Store runs and remove the leases of `places`; skip runs that are stored already.

        The runs are on disk when this returns.
        """

    def runs(self) -> list[Run]:
        """Return every run."""

    def by_key(self) -> Mapping[int, Run]:
        """Return every run by its key in the log, which never changes."""

    def count(self) -> int:
        """Return the number of runs."""

    def leases(self) -> LeaseBook:
        """Return the leases of the study."""


class Throttle:
    """Calls `act` at most every `every_s` seconds, and for at most a tenth of the time."""

    def __init__(
        self, act: Callable[[], object], every_s: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Call `act` for the first time after `every_s` seconds."""
        self._act, self._every_s, self._clock = act, every_s, clock
        self._next_at = clock() + every_s

    def __call__(self) -> None:
        """Call `act` if it is due."""
        begun = self._clock()
        if begun >= self._next_at:
            self._act()
            now = self._clock()
            self._next_at = now + max(self._every_s, 10.0 * (now - begun))


class MemoryRunLog:
    """Keeps runs in memory."""

    def __init__(self, added: Callable[[], object] = lambda: None) -> None:
        """Start empty; call `added` whenever runs were added."""
        self._runs: list[Run] = []
        self._added = added

    def extend(self, runs: Sequence[Run], places: Sequence[str] = ()) -> None:
        """Add runs, which have no leases."""
        del places
        self._runs.extend(runs)
        self._added()

    def runs(self) -> list[Run]:
        """Return every run."""
        return list(self._runs)

    def by_key(self) -> dict[int, Run]:
        """Return every run by its place in the log."""
        return dict(enumerate(self._runs))

    def count(self) -> int:
        """Return the number of runs."""
        return len(self._runs)

    def leases(self) -> MemoryLeaseBook:
        """Return an empty book."""
        return MemoryLeaseBook()


class SqlRunLog:
    """Keeps the runs of one study in a table of its storage."""

    def __init__(self, url: str, engine: Engine, study: str) -> None:
        """Use the table that `create_table` made at an address, for the study with this key."""
        self._url = url
        self._engine = engine
        self._study = study
        self.patience = Patience()
        self.fence: Fence = no_fence

    @staticmethod
    def create_table(where: Engine | Connection) -> None:
        """Create the tables of runs and leases if they are missing."""
        _METADATA.create_all(where)
        SqlLeaseBook.create_table(where)

    def leases(self) -> SqlLeaseBook:
        """Return the leases of the study."""
        return SqlLeaseBook(self._url, self._engine, self._study, self.patience, self.fence)

    def extend(self, runs: Sequence[Run], places: Sequence[str] = ()) -> None:
        """Store runs and remove their leases, in one transaction."""
        if not runs:
            return
        rows = [
            {
                "study": self._study,
                "trial": run.trial,
                "series": str(run.series),
                "round": run.round,
                "record": run.to_dict(),
                "digest": run_digest(run),
            }
            for run in runs
        ]
        with self._engine.begin() as connection:
            self.fence(connection)
            remove_leases(connection, self._study, places)
            digests = [row["digest"] for row in rows if row["digest"] is not None]
            wanted = select(RUNS.c.digest).where(RUNS.c.study == self._study, RUNS.c.digest.in_(digests))
            known = frozenset(connection.scalars(wanted))
            if new := [row for row in rows if row["digest"] not in known]:
                connection.execute(insert(RUNS), new)

    def runs(self) -> list[Run]:
        """Return every run."""
        return list(self.by_key().values())

    def by_key(self) -> dict[int, Run]:
        """Return every run by its key, in the order in which they ended."""
        wanted = select(RUNS).where(RUNS.c.study == self._study).order_by(RUNS.c.id)
        with self._engine.connect() as connection:
            rows = connection.execute(wanted).all()
        return {row.id: stored_run(row.record, row.trial, row.series, row.round) for row in rows}

    def count(self) -> int:
        """Return the number of runs."""
        wanted = select(func.count()).select_from(RUNS).where(RUNS.c.study == self._study)
        with self._engine.connect() as connection:
            return int(connection.scalar(wanted) or 0)
