"""The log of runs: every run of every study as one row beside Optuna's tables, which cannot change a finished trial."""

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from sqlalchemy import Column, Connection, Engine, Integer, MetaData, String, Table, func, insert, select

from autotune.records.series import TUNING
from autotune.records.study import Run
from autotune.storage.columns import Record
from autotune.storage.leases import LeaseBook, MemoryLeaseBook, SqlLeaseBook, give_up
from autotune.storage.readable import stored_run

_METADATA = MetaData()
RUNS = Table(
    "autotune_runs",
    _METADATA,
    Column("id", Integer, primary_key=True),
    Column("study", Integer, nullable=False, index=True),
    Column("trial", Integer),
    Column("series", String(200), nullable=False),
    Column("round", Integer, nullable=False),
    Column("record", Record, nullable=False),
)


class RunLog(Protocol):
    """Keeps runs in the order in which they ended."""

    def extend(self, runs: Sequence[Run], places: Collection[str] = ()) -> None:
        """Add runs, and give up the leases of `places`; they are safe when this returns."""

    def runs(self) -> list[Run]:
        """Return every run."""

    def keyed(self) -> Mapping[int, Run]:
        """Return every run by its key, which never changes."""

    def count(self, trial: int | None = None) -> int:
        """Return how many runs there are; of a `trial` those of tuning."""

    def leases(self, holder: str) -> LeaseBook:
        """Return the leases of the study in the hands of `holder`."""


class MemoryRunLog:
    """Keeps runs as long as the process lives."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def extend(self, runs: Sequence[Run], places: Collection[str] = ()) -> None:
        """Add runs; nobody else is there who could have leases."""
        del places
        self._runs.extend(runs)

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

    def __init__(self, engine: Engine, study_id: int) -> None:
        """Use the storage behind `engine`, where `create_table` was called once."""
        self._engine = engine
        self._study = study_id

    @staticmethod
    def create_table(where: Engine | Connection) -> None:
        """Make the table if it is not there, and that of the leases."""
        _METADATA.create_all(where)
        SqlLeaseBook.create_table(where)

    def leases(self, holder: str) -> SqlLeaseBook:
        """Return the leases of the study in the hands of `holder`."""
        return SqlLeaseBook(self._engine, self._study, holder)

    def extend(self, runs: Sequence[Run], places: Collection[str] = ()) -> None:
        """Add runs, all of them or none, and give up their leases in the same moment."""
        rows = [
            {
                "study": self._study,
                "trial": run.trial,
                "series": str(run.series),
                "round": run.round,
                "record": run.to_dict(),
            }
            for run in runs
        ]
        if rows:
            with self._engine.begin() as connection:
                connection.execute(insert(RUNS), rows)
                give_up(connection, self._study, places)

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
