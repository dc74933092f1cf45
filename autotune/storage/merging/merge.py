"""Merging: copy the studies and imported measurements of several storages into one, in one transaction.

Rows are copied from table to table under new keys. Foreign keys say which tables belong to a study and which to its
trials, so that a copy includes everything that Optuna stores. Leases are not copied: a session with runs in flight
works on the original.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, MetaData, Table

from autotune.errors import BusyError, StorageError
from autotune.files import make_private_folder
from autotune.locks import other_holder
from autotune.records.series import Series
from autotune.storage.address import hide_password, sqlite_path
from autotune.storage.connection import reading_connection, storage_errors, write_transaction
from autotune.storage.leases import LEASES
from autotune.storage.measurement_store import MEASUREMENTS
from autotune.storage.merging.plan import Action, PlannedStudy, StudyContents, digest, plan_merge
from autotune.storage.optuna_storage import check_optuna, open_for_writing
from autotune.storage.readable_study import CORRECTED, DEFINITION, MARK
from autotune.storage.run_log import RUNS, SqlRunLog, stored_keys
from autotune.storage.schema import has_studies, known_version
from autotune.storage.sqlite.held_file import discard_file

_STUDIES, _TRIALS, _ATTRIBUTES = "studies", "trials", "study_user_attributes"


@dataclass(frozen=True)
class Merged:
    """The result of merging one storage.

    Attributes:
        source: The storage's address, without a password.
        studies: Its studies, with the effect of the merge on each.
        measurements: The number of imported measurements that were new.
        replaced: The number of measurements that replaced others of fewer runs.
        left_out: The names of studies of other programs, or whose creation was interrupted.
    """

    source: str
    studies: tuple[PlannedStudy, ...]
    measurements: int
    replaced: int
    left_out: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether the merge added or replaced anything."""
        return self.measurements + self.replaced > 0 or any(
            study.action is not Action.NOTHING for study in self.studies
        )


def merge(sources: Sequence[str], target: str, say: Callable[[Merged], None], *, dry_run: bool = False) -> None:
    """Merge the contents of several storages into `target`; create it if it is missing.

    Repeating a merge changes nothing. A merge that fails leaves the target as it was.

    Args:
        sources: The addresses of the storages to copy from.
        target: The address of the storage to copy into.
        say: Called with the result for each source.
        dry_run: Only report what would be done.

    Raises:
        StorageError: A storage cannot be used, or a study was continued in two of them.
        BusyError: Another process works on a study in the target.
    """
    path = sqlite_path(target)
    is_new = path is not None and not path.exists()
    with ExitStack() as opening:
        readers = [opening.enter_context(_open_snapshot(source)) for source in sources]
        if dry_run:
            if is_new:
                _dry_run(sources, readers, [], {}, say)
                return
            with storage_errors(target), _open_snapshot(target) as there:
                _dry_run(sources, readers, _contents(there), _runs_per_measurement(there), say)
            return
        if not is_new:
            _check_idle(target)
        elif path is not None:
            _make_folder(path.parent)
        try:
            with storage_errors(target):
                open_for_writing(target, _make_tables)
                with write_transaction(target) as writer:
                    for source, reader in zip(sources, readers, strict=True):
                        say(_merge_storage(source, reader, writer))
        except BaseException:
            if is_new and path is not None:
                with suppress(OSError):
                    discard_file(path)
            raise


def _check_idle(url: str) -> None:
    """Refuse to change a file while another process works on one of its studies.

    Raises:
        BusyError: Another process holds the lock of a study in that file.
    """
    path = sqlite_path(url)
    if path is None:
        return
    locks = (one for one in path.absolute().parent.iterdir() if one.name.startswith(f"{path.name}."))
    for lock in sorted(one for one in locks if one.suffix == ".lock"):
        holder = other_holder(lock)
        if holder is not None:
            msg = (
                f"storage {hide_password(url)} is to be changed, and {lock.name} is held by {holder}: wait until "
                "that has ended, or stop it, and use the same command again"
            )
            raise BusyError(msg)


def _make_folder(folder: Path) -> None:
    try:
        make_private_folder(folder)
    except OSError as error:
        msg = f"the folder {folder} cannot be made: {error.strerror}; name another file to merge into"
        raise StorageError(msg) from error


def _make_tables(connection: Connection) -> None:
    SqlRunLog.create_table(connection)
    MEASUREMENTS.create(connection, checkfirst=True)


def _dry_run(
    sources: Sequence[str],
    readers: Sequence[Connection],
    there: list[StudyContents],
    known: Mapping[str, int],
    say: Callable[[Merged], None],
) -> None:
    for source, reader in zip(sources, readers, strict=True):
        with storage_errors(source):
            others, theirs = _contents(reader), _runs_per_measurement(reader)
            left_out = _others(reader, others)
        steps = plan_merge(there, others, hide_password(source))
        new, better = _news(theirs, known)
        say(Merged(hide_password(source), tuple(steps), len(new), len(better), left_out))
        known = {**known, **{digest: theirs[digest] for digest in new | better}}
        by_name = {study.name: study for study in others}
        replaced = {step.target for step in steps if step.action is not Action.NOTHING}
        there = [study for study in there if study.name not in replaced] + [
            replace(by_name[step.name], name=step.target) for step in steps if step.action is not Action.NOTHING
        ]


def _merge_storage(source: str, reader: Connection, writer: Connection) -> Merged:
    with storage_errors(source):
        others, measurements = _contents(reader), _runs_per_measurement(reader)
        left_out = _others(reader, others)
    tables = _Tables.of(source, reader, writer)
    steps = plan_merge(_contents(writer), others, hide_password(source))
    for step in steps:
        if step.action is Action.UPDATE:
            tables.remove(step.target)
        if step.action is not Action.NOTHING:
            tables.copy(step.name, step.target)
    added = _add_measurements(source, reader, writer, measurements)
    return Merged(hide_password(source), tuple(steps), *added, left_out)


@contextmanager
def _open_snapshot(url: str) -> Iterator[Connection]:
    """Provide a connection that sees one state of a storage, while others may write to it."""
    with storage_errors(url):
        check_optuna(url)
        with reading_connection(url) as connection:
            if sqlite_path(url) is not None:
                connection.exec_driver_sql("BEGIN")
            known_version(connection, url)
            yield connection


def _contents(connection: Connection) -> list[StudyContents]:
    """Return autotune's studies in a storage, oldest first."""
    if not has_studies(connection):
        return []
    tables = MetaData()
    tables.reflect(connection, only=(_STUDIES, _TRIALS, _ATTRIBUTES))
    studies, trials, attributes = (tables.tables[name] for name in (_STUDIES, _TRIALS, _ATTRIBUTES))
    found, keys = [], stored_keys(connection)
    for key, name in connection.execute(sa.select(studies.c.study_id, studies.c.study_name).order_by("study_id")):
        wanted = sa.select(attributes.c.key, attributes.c.value_json).where(attributes.c.study_id == key)
        texts: dict[str, str] = {row[0]: row[1] for row in connection.execute(wanted)}
        if DEFINITION not in texts:
            continue
        runs = sa.select(RUNS.c.record, RUNS.c.trial, RUNS.c.series, RUNS.c.round).where(RUNS.c.study == keys[key])
        counted = sa.select(sa.func.count()).select_from(trials).where(trials.c.study_id == key)
        found.append(
            StudyContents(
                name=str(name),
                mark=texts.get(MARK) or digest(name, texts[DEFINITION]),
                definition=json.loads(texts[DEFINITION]),
                runs=frozenset(_run_id(*row) for row in connection.execute(runs)),
                attributes=texts,
                corrected=tuple(json.loads(texts.get(CORRECTED, "{}")).get("tokens", ())),
                trials=int(connection.scalar(counted) or 0),
            )
        )
    return found


def _run_id(record: Mapping[str, Any], trial: int | None, series: str, round_number: int) -> str:
    """Return a digest that identifies a run in every copy, also after it was read again or set aside."""
    place = (trial, str(Series.parse(series).before), round_number)
    return digest(*place, *(record.get(name) for name in ("started", "configuration", "block", "steps")))


def _others(connection: Connection, ours: Iterable[StudyContents]) -> tuple[str, ...]:
    """Return the names of studies that are not `ours`: of other programs, or whose creation was interrupted."""
    if not has_studies(connection):
        return ()
    names: sa.ScalarResult[str] = connection.scalars(
        sa.select(sa.column("study_name", sa.String)).select_from(sa.table(_STUDIES))
    )
    return tuple(sorted({*map(str, names)} - {study.name for study in ours}))


def _runs_per_measurement(connection: Connection) -> dict[str, int]:
    """Return the number of runs behind each imported measurement, by its digest."""
    if not sa.inspect(connection).has_table(MEASUREMENTS.name):
        return {}
    rows = connection.execute(sa.select(MEASUREMENTS.c.digest, MEASUREMENTS.c.record))
    return {str(row.digest): int(row.record.get("runs", 1)) for row in rows}


def _news(theirs: Mapping[str, int], known: Mapping[str, int]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the digests of new measurements, and of those with more runs than the known ones."""
    better = frozenset(digest for digest, runs in theirs.items() if digest in known and runs > known[digest])
    return frozenset(theirs) - known.keys(), better


def _add_measurements(
    source: str, reader: Connection, writer: Connection, theirs: Mapping[str, int]
) -> tuple[int, int]:
    """Copy measurements that are new or have more runs; return the number of each."""
    new, better = _news(theirs, _runs_per_measurement(writer))
    columns = [column for column in MEASUREMENTS.c if not column.primary_key]
    wanted = sa.select(*columns).order_by(MEASUREMENTS.c.id)
    rows = _read(source, reader, wanted) if new or better else []
    if new:
        writer.execute(sa.insert(MEASUREMENTS), [row for row in rows if row["digest"] in new])
    for row in rows:
        if row["digest"] in better:
            writer.execute(sa.update(MEASUREMENTS).where(MEASUREMENTS.c.digest == row["digest"]).values(row))
    return len(new), len(better)


def _read(source: str, reader: Connection, statement: sa.Select[Any]) -> list[dict[str, Any]]:
    """Return the rows of a source; its damage is not that of the target."""
    with storage_errors(source):
        return [dict(row) for row in reader.execute(statement).mappings()]


@dataclass(frozen=True)
class _Tables:
    """The tables of two storages; their foreign keys say which belong to studies and which to trials."""

    source: str
    reader: Connection
    writer: Connection
    there: MetaData
    here: MetaData

    @classmethod
    def of(cls, source: str, reader: Connection, writer: Connection) -> "_Tables":
        there, here = MetaData(), MetaData()
        with storage_errors(source):
            there.reflect(reader)
        here.reflect(writer)
        return cls(source, reader, writer, there, here)

    def copy(self, name: str, target: str) -> None:
        """Copy a study under the name `target`."""
        studies = self.there.tables[_STUDIES]
        (old,) = self.reader.scalars(sa.select(studies.c.study_id).where(studies.c.study_name == name))
        new = self._insert(_STUDIES, {"study_name": target})
        for table in self._belonging_to(_STUDIES):
            if table.name != _TRIALS:
                self._copy_rows(table, "study_id", {old: new})
        trials = self.there.tables[_TRIALS]
        rows = self._read(sa.select(trials).where(trials.c.study_id == old).order_by(trials.c.number))
        keys = {row["trial_id"]: self._insert(_TRIALS, {**row, "study_id": new}) for row in rows}
        for table in self._belonging_to(_TRIALS):
            self._copy_rows(table, "trial_id", keys)
        columns = (RUNS.c.trial, RUNS.c.series, RUNS.c.round, RUNS.c.record, RUNS.c.digest)
        before, after = stored_keys(self.reader)[old], stored_keys(self.writer)[new]
        runs = self._read(sa.select(*columns).where(RUNS.c.study == before).order_by(RUNS.c.id))
        copies = [{**run, "study": after} for run in runs]
        if copies:
            self.writer.execute(sa.insert(RUNS), copies)

    def remove(self, name: str) -> None:
        """Remove a study from the target."""
        studies, trials = self.here.tables[_STUDIES], self.here.tables[_TRIALS]
        (key,) = self.writer.scalars(sa.select(studies.c.study_id).where(studies.c.study_name == name))
        own = sa.select(trials.c.trial_id).where(trials.c.study_id == key)
        for table in (RUNS, LEASES):
            self.writer.execute(sa.delete(table).where(table.c.study == stored_keys(self.writer)[key]))
        for table in self._belonging_to(_TRIALS):
            there = self.here.tables[table.name]
            self.writer.execute(sa.delete(there).where(there.c.trial_id.in_(own)))
        self.writer.execute(sa.delete(trials).where(trials.c.study_id == key))
        for table in self._belonging_to(_STUDIES):
            there = self.here.tables[table.name]
            self.writer.execute(sa.delete(there).where(there.c.study_id == key))
        self.writer.execute(sa.delete(studies).where(studies.c.study_id == key))

    def _belonging_to(self, name: str) -> list[Table]:
        owner = self.there.tables[name]
        return [
            table
            for table in self.there.sorted_tables
            if any(key.column.table is owner for key in table.foreign_keys) and table.name in self.here.tables
        ]

    def _copy_rows(self, table: Table, owner: str, keys: dict[int, int]) -> None:
        column = table.c[owner]
        ids = sorted(keys)
        for start in range(0, len(ids), 500):
            wanted = sa.select(table).where(column.in_(ids[start : start + 500])).order_by(*table.primary_key)
            own = {key.name for key in table.primary_key}
            rows = [
                {name: value for name, value in row.items() if name not in own} | {owner: keys[row[owner]]}
                for row in self._read(wanted)
            ]
            if rows:
                self.writer.execute(sa.insert(self.here.tables[table.name]), rows)

    def _read(self, statement: sa.Select[Any]) -> list[dict[str, Any]]:
        return _read(self.source, self.reader, statement)

    def _insert(self, name: str, row: dict[str, object]) -> int:
        table = self.here.tables[name]
        (key,) = (column.name for column in table.primary_key)
        values = {column: value for column, value in row.items() if column != key}
        inserted = self.writer.execute(sa.insert(table).values(values)).inserted_primary_key
        if inserted is None:
            msg = f"table {name} gave no key to a new row"
            raise StorageError(msg)
        return int(inserted[0])
