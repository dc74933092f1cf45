"""The log of runs: every run of every study as one row beside Optuna's tables, which cannot change a finished trial."""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import zip_longest
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
from sqlalchemy.exc import IntegrityError

from autotune.records.series import TUNING
from autotune.records.study import Run
from autotune.storage.columns import Record
from autotune.storage.connection import Patience
from autotune.storage.leases import LEASES, LeaseBook, MemoryLeaseBook, SqlLeaseBook, give_up
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


def forget_deleted(connection: Connection) -> None:
    """Forget the runs and the leases of studies that another program has deleted."""
    keys = list(stored_keys(connection).values())
    for table in (RUNS, LEASES):
        connection.execute(delete(table).where(table.c.study.not_in(keys)))


class RunLog(Protocol):
    """Keeps runs in the order in which they ended."""

    def extend(self, runs: Sequence[Run], places: Sequence[str] = (), holder: str = "") -> Collection[str]:
        """Add runs, and give up their leases, those of `places`; they are safe when this returns.

        A run that is there already is not added again. Where a `holder` has leases, a run whose lease is no longer
        its own is not added either; the places of those are returned.
        """

    def runs(self) -> list[Run]:
        """Return every run."""

    def keyed(self) -> Mapping[int, Run]:
        """Return every run by its key, which never changes."""

    def count(self, trial: int | None = None) -> int:
        """Return how many runs there are; of a `trial` those of tuning."""

    def leases(self, holder: str) -> LeaseBook:
        """Return the leases of the study in the hands of `holder`."""


class Seldom:
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

    def extend(self, runs: Sequence[Run], places: Sequence[str] = (), holder: str = "") -> Collection[str]:
        """Add runs; nobody else is there who could have leases."""
        del places, holder
        self._runs.extend(runs)
        self._added()
        return ()

    def runs(self) -> list[Run]:
        """Return every run."""
        return list(self._runs)

    def keyed(self) -> dict[int, Run]:
        """Return every run by its place."""
        return dict(enumerate(self._runs))

    def count(self, trial: int | None = None) -> int:
        """Return how many runs there are; of a `trial` those of tuning."""
        return sum(trial is None or (run.trial == trial and run.series.is_tuning) for run in self._runs)

    def leases(self, holder: str) -> MemoryLeaseBook:
        """Return leases that nobody else sees."""
        return MemoryLeaseBook(holder, time.monotonic)


class SqlRunLog:
    """Keeps the runs of one study in a table of its storage."""

    def __init__(self, engine: Engine, study: str) -> None:
        """Use the storage behind `engine`, where `create_table` was called once, for the study of that key."""
        self._engine = engine
        self._study = study
        self.patience = Patience()

    @staticmethod
    def create_table(where: Engine | Connection) -> None:
        """Make the table if it is not there, and that of the leases."""
        _METADATA.create_all(where)
        SqlLeaseBook.create_table(where)

    def leases(self, holder: str) -> SqlLeaseBook:
        """Return the leases of the study in the hands of `holder`."""
        return SqlLeaseBook(self._engine, self._study, holder, self.patience)

    def extend(self, runs: Sequence[Run], places: Sequence[str] = (), holder: str = "") -> Collection[str]:
        """Add runs, all of them or none, and give up their leases in the same moment."""
        if not runs:
            return ()
        try:
            return self._extended(runs, places, holder)
        except IntegrityError:
            # Somebody else has stored one of them in this moment: now it is seen to be there.
            return self._extended(runs, places, holder)

    def _extended(self, runs: Sequence[Run], places: Sequence[str], holder: str) -> Collection[str]:
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
            # The leases first: from then on nobody takes one over before its run is stored.
            gone = give_up(connection, self._study, holder, places) if holder else frozenset()
            digests = [row["digest"] for row in rows if row["digest"] is not None]
            wanted = select(RUNS.c.digest).where(RUNS.c.study == self._study, RUNS.c.digest.in_(digests))
            known = frozenset(connection.scalars(wanted))
            missing = [row["digest"] not in known for row in rows]
            lost = {place for place, is_missing in zip(places, missing, strict=False) if is_missing and place in gone}
            new = [row for row, place in zip_longest(rows, places) if row["digest"] not in known and place not in lost]
            if new:
                connection.execute(insert(RUNS), new)
        return lost

    def runs(self) -> list[Run]:
        """Return every run."""
        return list(self.keyed().values())

    def keyed(self) -> dict[int, Run]:
        """Return every run by its key, in the order in which they ended."""
        wanted = select(RUNS).where(RUNS.c.study == self._study).order_by(RUNS.c.id)
        with self._engine.connect() as connection:
            rows = connection.execute(wanted).all()
        return {row.id: stored_run(row.record, row.trial, row.series, row.round) for row in rows}

    def count(self, trial: int | None = None) -> int:
        """Return how many runs there are; of a `trial` those of tuning."""
        wanted = select(func.count()).select_from(RUNS).where(RUNS.c.study == self._study)
        if trial is not None:
            wanted = wanted.where(RUNS.c.trial == trial, RUNS.c.series == str(TUNING))
        with self._engine.connect() as connection:
            return int(connection.scalar(wanted) or 0)
