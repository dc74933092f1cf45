"""Shelf: all the studies of a storage: which there are, whether they have changed, and how to throw one away."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from sqlalchemy import (
    Engine,
    String,
    Text,
    case,
    cast,
    column,
    delete,
    func,
    inspect,
    select,
    table,
    type_coerce,
    update,
)

from autotune.errors import StorageError
from autotune.records.labels import Labels
from autotune.storage.address import shown, sqlite_path
from autotune.storage.connection import storage_errors, tables_engine
from autotune.storage.leases import LEASES
from autotune.storage.measurement_store import MEASUREMENTS
from autotune.storage.optuna_storage import connect, open_for_writing
from autotune.storage.readable import DEFINITION, LABELS, ReadableStudy
from autotune.storage.run_log import RUNS, SqlRunLog, stored_keys
from autotune.storage.stored_study import known_tables, study_in
from autotune.storage.study_store import StudyStore
from autotune.storage.tables import Tables

_STUDIES = table("studies", column("study_id"), column("study_name"))
_TRIALS = table("trials", column("study_id"), column("state"))
_ATTRIBUTES = table("study_user_attributes", column("study_id"), column("key"), column("value_json"))

# A number that JSON holds exactly, for every program.
_VERSION_BYTES = 6


class StoredStudies:
    """The studies of one storage, which is made if it is not there; unless they are only read."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open a storage.

        Raises:
            StorageError: it cannot be used.
        """
        self._url = url
        self.read_only = read_only
        # One connection pool for all studies, of a storage on a server.
        self._tables: Tables | None = None
        with storage_errors(url):
            self._storage: RDBStorage = (
                connect(url, read_only=True) if read_only else open_for_writing(url, SqlRunLog.create_table)
            )

    @property
    def url(self) -> str:
        """Where it is."""
        return self._url

    @property
    def _engine(self) -> Engine:
        # How a file that cannot be written is read depends on whether somebody writes it now.
        return tables_engine(self._url) if self.read_only and sqlite_path(self._url) else self._storage.engine

    def versions(self) -> Mapping[str, int]:
        """Return a number for each study of ours, by name, that is another when anything of the study is.

        Raises:
            StorageError: the storage cannot be read.
        """
        told: dict[int, list[object]] = defaultdict(list)
        finished = func.sum(case((cast(_TRIALS.c.state, String).in_(("RUNNING", "WAITING")), 0), else_=1))
        runs = select(RUNS.c.study, func.count(), func.max(RUNS.c.id)).group_by(RUNS.c.study)
        trials = select(_TRIALS.c.study_id, func.count(), finished).group_by(_TRIALS.c.study_id)
        attributes = select(_ATTRIBUTES).order_by(_ATTRIBUTES.c.study_id, _ATTRIBUTES.c.key)
        ours = set()
        with storage_errors(self._url), self._engine.connect() as connection:
            names = {int(row.study_id): str(row.study_name) for row in connection.execute(select(_STUDIES))}
            counted = {row[0]: row[1:] for row in connection.execute(runs)}
            for number, key in stored_keys(connection).items():
                told[number] += map(int, counted.get(key, ()))
            for row in connection.execute(trials):
                told[row[0]] += [int(figure) for figure in row[1:]]
            for row in connection.execute(attributes):
                told[row.study_id] += [row.key, row.value_json]
                if row.key == DEFINITION:
                    ours.add(row.study_id)
        return {name: _digest(told[number]) for number, name in sorted(names.items()) if number in ours}

    def imported_version(self) -> int:
        """Return a number that is another when anything of the imported measurements is.

        Raises:
            StorageError: the storage cannot be read.
        """
        # As texts: nobody needs what they say. More runs of a measurement replace it, under the key that it has.
        wanted = select(MEASUREMENTS.c.id, type_coerce(MEASUREMENTS.c.record, Text)).order_by(MEASUREMENTS.c.id)
        with storage_errors(self._url), self._engine.connect() as connection:
            rows = connection.execute(wanted).all() if inspect(connection).has_table(MEASUREMENTS.name) else []
        return _digest([part for row in rows for part in row])

    def open(self, name: str) -> StudyStore:
        """Open a study for reading.

        Raises:
            StorageError: there is none of that name.
        """
        return StudyStore.read(self._url, name)

    def snapshot(self, name: str) -> ReadableStudy:
        """Return a study as it is now, to be summed up: read without Optuna, which takes ten times as long.

        Raises:
            StorageError: there is none of that name, or the storage cannot be read.
        """
        if self._tables is None:
            self._tables = known_tables(self._url)
        return self.open(name) if self._tables is None else study_in(self._tables, self._url, name)

    def note(self, name: str, labels: Labels) -> None:
        """Store the labels of a study, in place of those that it had; whoever works on it is not disturbed.

        Raises:
            StorageError: there is none of that name, or the storage cannot be written.
        """
        StudyStore.read(self._url, name, read_only=False).set_attribute(LABELS, labels.to_dict())

    def rename(self, old: str, new: str, moved: tuple[Path, Path] | None = None) -> None:
        """Give a study another name; if its runs have `moved` from one folder to another, their records say so.

        Raises:
            StorageError: the storage cannot be written.
        """
        with storage_errors(self._url):
            number = self._storage.get_study_id_from_name(old)
            with self._engine.begin() as connection:
                connection.execute(update(_STUDIES).where(_STUDIES.c.study_id == number).values(study_name=new))
                key = stored_keys(connection)[number]
                for row in connection.execute(select(RUNS).where(RUNS.c.study == key)).all() if moved else ():
                    assert moved is not None
                    job = row.record["job"]
                    folder = Path(job.get("folder", ""))
                    if folder.is_relative_to(moved[0]):
                        there = str(moved[1] / folder.relative_to(moved[0]))
                        record = {**row.record, "job": {**job, "folder": there}}
                        connection.execute(update(RUNS).where(RUNS.c.id == row.id).values(record=record))

    def remove(self, name: str) -> None:
        """Throw a study away: its trials, its runs, and what was found.

        Raises:
            StorageError: there is none of that name, or the storage cannot be written.
        """
        with storage_errors(self._url):
            try:
                number = self._storage.get_study_id_from_name(name)
            except KeyError:
                msg = f"no study {name!r} in {shown(self._url)}"
                raise StorageError(msg) from None
            # The runs first: without them the study is still there, to be thrown away once more.
            with self._engine.begin() as connection:
                key = stored_keys(connection)[number]
                for own in (RUNS, LEASES):
                    connection.execute(delete(own).where(own.c.study == key))
            optuna.delete_study(study_name=name, storage=self._storage)


def _digest(parts: list[object]) -> int:
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_VERSION_BYTES).digest(), "big")
