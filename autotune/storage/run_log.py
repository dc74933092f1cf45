"""The log of runs: every run of every study as one row beside Optuna's tables, which cannot change a finished trial."""

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
from autotune.storage.readable import MARK, stored_run, study_key

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
    """Return the key of a run in its study: when it was started, and where; None if nobody knows.

    One job is one run, however often its outcome is stored. A run that another program made has no folder.
    """
    if not run.started:
        return None
    place = run.job.get("folder") or f"{run.trial} {run.series} {run.round}"
    return hashlib.blake2b(f"{run.started} {place}".encode(), digest_size=_DIGEST_BYTES).hexdigest()


def stored_keys(connection: Connection) -> Mapping[int, str]:
    """Return the keys of all studies in a storage, by their numbers."""
    marks = {study: json.loads(mark) for study, mark in connection.execute(_MARKS, {"key": MARK})}
    return {study: study_key(study, marks.get(study)) for study in connection.scalars(_STUDIES)}


def remove_deleted_studies(connection: Connection) -> None:
    """Forget the runs and the leases of studies that another program has deleted."""
    keys = [*stored_keys(connection).values(), SESSIONS]
    for table in (RUNS, LEASES):
        connection.execute(delete(table).where(table.c.study.not_in(keys)))


class RunLog(Protocol):
    """Keeps runs in the order in which they ended."""

    def extend(self, runs: Sequence[Run], places: Sequence[str] = ()) -> None:
        """Add runs, and give up their leases, those of `places`; they are safe when this returns.

        A run that is there already is not added again.
        """

    def runs(self) -> list[Run]:
        """Return every run."""

    def keyed(self) -> Mapping[int, Run]:
        """Return every run by its key, which never changes."""

    def count(self) -> int:
        """Return how many runs there are."""

    def leases(self) -> LeaseBook:
        """Return the leases of the study."""


class Throttle:
    """Calls `act` when it is called, but only every `every_s` seconds, and for no more than a tenth of the time."""

    def __init__(
        self, act: Callable[[], object], every_s: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Act first when that time is over."""
        self._act, self._every_s, self._clock = act, every_s, clock
        self._next_at = clock() + every_s

    def __call__(self) -> None:
        """Act, if it is time."""
        begun = self._clock()
        if begun >= self._next_at:
            self._act()
            now = self._clock()
            self._next_at = now + max(self._every_s, 10.0 * (now - begun))


class MemoryRunLog:
    """Keeps runs as long as the process lives."""

    def __init__(self, added: Callable[[], object] = lambda: None) -> None:
        """Call `added` after runs were added."""
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

    def keyed(self) -> dict[int, Run]:
        """Return every run by its place."""
        return dict(enumerate(self._runs))

    def count(self) -> int:
        """Return how many runs there are."""
        return len(self._runs)

    def leases(self) -> MemoryLeaseBook:
        """Return an empty book."""
        return MemoryLeaseBook()


class SqlRunLog:
    """Keeps the runs of one study in a table of its storage."""

    def __init__(self, engine: Engine, study: str) -> None:
        """Use the storage behind `engine`, where `create_table` was called once, for the study of that key."""
        self._engine = engine
        self._study = study
        self.patience = Patience()
        self.fence: Fence = no_fence

    @staticmethod
    def create_table(where: Engine | Connection) -> None:
        """Make the table if it is not there, and that of the leases."""
        _METADATA.create_all(where)
        SqlLeaseBook.create_table(where)

    def leases(self) -> SqlLeaseBook:
        """Return the leases of the study."""
        return SqlLeaseBook(self._engine, self._study, self.patience, self.fence)

    def extend(self, runs: Sequence[Run], places: Sequence[str] = ()) -> None:
        """Add runs, all of them or none, and give up their leases in the same moment."""
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
        return list(self.keyed().values())

    def keyed(self) -> dict[int, Run]:
        """Return every run by its key, in the order in which they ended."""
        wanted = select(RUNS).where(RUNS.c.study == self._study).order_by(RUNS.c.id)
        with self._engine.connect() as connection:
            rows = connection.execute(wanted).all()
        return {row.id: stored_run(row.record, row.trial, row.series, row.round) for row in rows}

    def count(self) -> int:
        """Return how many runs there are."""
        wanted = select(func.count()).select_from(RUNS).where(RUNS.c.study == self._study)
        with self._engine.connect() as connection:
            return int(connection.scalar(wanted) or 0)
