"""All studies of a storage: list them, detect changes, rename and remove them."""

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
from autotune.storage.address import hide_password, sqlite_path
from autotune.storage.connection import storage_errors, tables_engine
from autotune.storage.leases import LEASES
from autotune.storage.measurement_store import MEASUREMENTS
from autotune.storage.optuna_storage import open_for_reading, open_for_writing
from autotune.storage.readable_study import DEFINITION, LABELS, MARK, ReadableStudy, study_key
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
    """The studies of one storage; creates a missing storage, unless it is opened read-only."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        """Open a storage.

        Raises:
            StorageError: The storage cannot be used.
        """
        self._url = url
        self.read_only = read_only
        # Kept, so that all studies on a server share one connection pool.
        self._tables: Tables | None = None
        with storage_errors(url):
            self._storage: RDBStorage = (
                open_for_reading(url) if read_only else open_for_writing(url, SqlRunLog.create_table)
            )

    @property
    def url(self) -> str:
        """The storage's address."""
        return self._url

    @property
    def _engine(self) -> Engine:
        # A new engine each time: how a read-only file is opened depends on whether another process writes it now.
        return tables_engine(self._url) if self.read_only and sqlite_path(self._url) else self._storage.engine

    def versions(self) -> Mapping[str, int]:
        """Return a number for each of autotune's studies, by name, that changes with any change of the study.

        Raises:
            StorageError: The storage cannot be read.
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
            for row in connection.execute(trials):
                told[row[0]] += [int(figure) for figure in row[1:]]
            for row in connection.execute(attributes):
                told[row.study_id] += [row.key, row.value_json]
                if row.key == DEFINITION:
                    ours.add(row.study_id)
                elif row.key == MARK:
                    # The JSON of a mark, without its quotes: decoding a damaged one would be an error of all studies.
                    marked = study_key(row.study_id, str(row.value_json).strip('"'))
                    told[row.study_id] += map(int, counted.get(marked, ()))
        return {name: _digest(told[number]) for number, name in sorted(names.items()) if number in ours}

    def imported_version(self) -> int:
        """Return a number that changes with any change of the imported measurements.

        Raises:
            StorageError: The storage cannot be read.
        """
        # The records count, not only the keys: more runs of a measurement replace its record under the same key.
        # As text, since only their digest is needed.
        wanted = select(MEASUREMENTS.c.id, type_coerce(MEASUREMENTS.c.record, Text)).order_by(MEASUREMENTS.c.id)
        with storage_errors(self._url), self._engine.connect() as connection:
            rows = connection.execute(wanted).all() if inspect(connection).has_table(MEASUREMENTS.name) else []
        return _digest([part for row in rows for part in row])

    def open(self, name: str) -> StudyStore:
        """Open a study for reading.

        Raises:
            StorageError: The storage has no study of that name.
        """
        return StudyStore.read(self._url, name)

    def snapshot(self, name: str) -> ReadableStudy:
        """Return a study as it is now, for a summary: read without Optuna, which takes ten times as long.

        Raises:
            StorageError: The storage has no study of that name, or cannot be read.
        """
        if self._tables is None:
            self._tables = known_tables(self._url)
        return self.open(name) if self._tables is None else study_in(self._tables, self._url, name)

    def note(self, name: str, labels: Labels) -> None:
        """Replace the labels of a study, also while a session works on it.

        Raises:
            StorageError: The storage has no study of that name, or cannot be written.
        """
        StudyStore.read(self._url, name, read_only=False).set_attribute(LABELS, labels.to_dict())

    def rename(self, old: str, new: str, moved: tuple[Path, Path] | None = None) -> None:
        """Rename a study.

        Args:
            old: Its name.
            new: Its new name.
            moved: The old and the new folder of its runs, whose records then get the new paths.

        Raises:
            StorageError: The storage cannot be written.
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
        """Remove a study with its trials, runs, leases and attributes.

        Raises:
            StorageError: The storage has no study of that name, or cannot be written.
        """
        with storage_errors(self._url):
            try:
                number = self._storage.get_study_id_from_name(name)
            except KeyError:
                msg = f"no study {name!r} in {hide_password(self._url)}"
                raise StorageError(msg) from None
            # The runs first: if this is interrupted, the study is still listed and can be removed again.
            with self._engine.begin() as connection:
                key = stored_keys(connection)[number]
                for own in (RUNS, LEASES):
                    connection.execute(delete(own).where(own.c.study == key))
            optuna.delete_study(study_name=name, storage=self._storage)


def _digest(parts: list[object]) -> int:
    text = "\0".join(map(str, parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=_VERSION_BYTES).digest(), "big")
