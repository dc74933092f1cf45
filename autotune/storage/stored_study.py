"""Reading stored studies without Optuna, whose import takes longer than the reading.

Known versions of Optuna's tables are read directly; others are read through Optuna.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from itertools import count
from typing import Any

from autotune.errors import ChangedProgramError, StorageError
from autotune.records.study import Run, TrialRecord
from autotune.storage.address import hide_password, is_postgresql, sqlite_path
from autotune.storage.damage import content_errors
from autotune.storage.optuna_tables import are_known, parameter_reader
from autotune.storage.readable_study import (
    ABANDONED,
    DEFINITION,
    MARK,
    ReadableStudy,
    check_same,
    difference_message,
    runs_of_tuning,
    stored_run,
    study_key,
)
from autotune.storage.tables import VERSION, SqliteTables, Tables
from autotune.studyfile.definition import Definition

_SCHEMA, _STUDIES, _REVISIONS = "autotune_schema", "studies", "alembic_version"
_OPEN = frozenset({"RUNNING", "WAITING"})

_VERSION_OF = "SELECT version FROM autotune_schema WHERE id = 1"
_REVISION_OF = "SELECT version_num FROM alembic_version"
_NAMES = "SELECT study_name, study_id FROM studies ORDER BY study_id"
_ATTRIBUTES = "SELECT study_id, key, value_json FROM study_user_attributes"
_ATTRIBUTES_OF = "SELECT key, value_json FROM study_user_attributes WHERE study_id = :study"
_RUNS = "SELECT record, trial, series, round FROM autotune_runs WHERE study = :study ORDER BY id"
_TRIALS = "SELECT trial_id, number, CAST(state AS VARCHAR) FROM trials WHERE study_id = :study ORDER BY number"
_ABANDONED = """
    SELECT trial_id FROM trial_user_attributes WHERE key = :key
    AND trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study)
"""
_PARAMETERS = """
    SELECT trial_id, param_name, param_value, distribution_json FROM trial_params
    WHERE trial_id IN (SELECT trial_id FROM trials WHERE study_id = :study) ORDER BY param_id
"""


class StoredStudy:
    """A snapshot of one study in known tables.

    The texts of definition and attributes are read when the study is opened. Runs are read at their first use, and then
    cached, because a summary uses them several times. Damage in one study is an error of that study only.
    """

    def __init__(self, tables: Tables, url: str, key: int, name: str, attributes: Mapping[str, str]) -> None:
        """Wrap a study at `url` and its stored attributes; use `open_stored_study` or `open_stored_studies`."""
        self._tables = tables
        self._about = f"study {name!r} in {hide_password(url)}"
        self._key = key
        self._name = name
        self._texts = attributes
        self._decoded: dict[str, Any] = {}
        self._runs: list[Run] | None = None

    @property
    def name(self) -> str:
        """The study's name."""
        return self._name

    @cached_property
    def definition(self) -> Definition:
        """The definition of the study."""
        with content_errors(self._about):
            return Definition.from_dict(self._decode(DEFINITION))

    def attribute(self, name: str) -> Mapping[str, Any] | None:
        """Return a stored attribute; None if it is not stored."""
        with content_errors(self._about):
            found: Mapping[str, Any] | None = self._decode(name) if name in self._texts else None
            return found

    def _decode(self, name: str) -> Any:  # noqa: ANN401  whatever JSON holds
        if name not in self._decoded:
            self._decoded[name] = json.loads(self._texts[name])
        return self._decoded[name]

    def runs(self) -> list[Run]:
        """Return every run of the study, in the order in which they ended."""
        if self._runs is None:
            with content_errors(self._about):
                mark = self._decode(MARK) if MARK in self._texts else None
                rows = self._tables.rows(_RUNS, study=study_key(self._key, mark))
                self._runs = [stored_run(json.loads(record), *places) for record, *places in rows]
        return list(self._runs)

    def trials(self) -> list[TrialRecord]:
        """Return every proposed trial by number, each with the runs that count for it."""
        runs = runs_of_tuning(self.runs())
        trials = self._tables.rows(_TRIALS, study=self._key)
        abandoned = {trial_id for (trial_id,) in self._tables.rows(_ABANDONED, study=self._key, key=ABANDONED)}
        values: dict[int, dict[str, Any]] = defaultdict(dict)
        with content_errors(self._about):
            for trial_id, name, value, distribution in self._tables.rows(_PARAMETERS, study=self._key):
                values[trial_id][name] = parameter_reader(distribution)(value)
            return [
                TrialRecord.of(int(number), values[trial_id], runs[number], settled=state not in _OPEN)
                for trial_id, number, state in trials
                if trial_id not in abandoned
            ]


def open_stored_study(url: str, name: str) -> ReadableStudy:
    """Open the study called `name` for reading.

    Raises:
        StorageError: The storage cannot be read, or has no such study.
    """
    tables = known_tables(url)
    if tables is None:
        from autotune.storage.study_store import StudyStore  # noqa: PLC0415  importing Optuna takes a while

        return StudyStore.read(url, name)
    return study_in(tables, url, name)


def study_in(tables: Tables, url: str, name: str) -> StoredStudy:
    """Open the study called `name` in the known tables at `url`.

    Raises:
        StorageError: The storage cannot be read, or has no such study.
    """
    keys = dict(tables.rows(_NAMES))
    if name not in keys:
        msg = f"no study {name!r} in {hide_password(url)}; there: {', '.join(keys) or 'none'}"
        raise StorageError(msg)
    found = dict(tables.rows(_ATTRIBUTES_OF, study=keys[name]))
    if DEFINITION not in found:
        msg = f"study {name!r} in {hide_password(url)} was not made by autotune, or was interrupted while it was made"
        raise StorageError(msg)
    return StoredStudy(tables, url, keys[name], name, found)


def check_continues(url: str, name: str, definition: Definition) -> None:
    """Check, without writing, that a session with this definition can continue the stored study, if there is one.

    Raises:
        StorageError: The storage cannot be read.
        DifferentStudyError: The stored study has another definition.
        ChangedProgramError: Only the program or its files have changed.
    """
    tables = known_tables(url)
    if tables is None:
        return  # opening the study checks it again, through Optuna
    keys, attributes = _studies(tables)

    def stored(name: str) -> Definition | None:
        if name not in keys or DEFINITION not in attributes[keys[name]]:
            return None
        return StoredStudy(tables, url, keys[name], name, attributes[keys[name]]).definition

    known = stored(name)
    if known is not None and known.is_upgraded(definition):
        # A study that was made by hand, and is about something else, keeps its name.
        names = (f"{name}-{number}" for number in count(2))
        free = next(one for one in names if (later := stored(one)) is None or not later.differences(definition))
        differences = known.differences(definition)
        remedy = (
            f"study {free} is of this program: give that name"
            if free in keys
            else f"tune it as a study of its own: autotune study with --name {free}, or with another --storage"
        )
        raise ChangedProgramError(difference_message(url, name, differences, remedy), differences, free)
    if known is not None:
        check_same(url, name, known, definition)


def open_stored_studies(url: str) -> list[ReadableStudy]:
    """Open all of autotune's studies in a storage for reading; skip those whose creation was interrupted.

    Raises:
        StorageError: The storage cannot be read.
    """
    tables = known_tables(url)
    if tables is None:
        from autotune.storage.study_store import StudyStore, study_names  # noqa: PLC0415  as above

        opened = (StudyStore.read_if_ours(url, name) for name in study_names(url))
        return [store for store in opened if store is not None]
    keys, attributes = _studies(tables)
    return [
        StoredStudy(tables, url, key, name, attributes[key])
        for name, key in keys.items()
        if DEFINITION in attributes[key]
    ]


def find_stored_studies(url: str) -> list[ReadableStudy]:
    """Return the same as `open_stored_studies`; nothing for a storage that is missing, or was never completed.

    Raises:
        StorageError: The storage cannot be read.
    """
    tables = _tables(url)
    is_new = tables is None or _REVISIONS not in tables.names() or not tables.rows(_REVISION_OF)
    return [] if is_new else open_stored_studies(url)


def known_tables(url: str) -> Tables | None:
    """Return the tables of a storage; None if they are missing or of an unknown version.

    Raises:
        StorageError: The storage cannot be read.
    """
    tables = _tables(url)
    if tables is None:
        return None
    names = tables.names()
    if not names >= {_STUDIES, _REVISIONS, _SCHEMA} or tables.rows(_VERSION_OF) != [(VERSION,)]:
        return None
    kind = "postgresql" if is_postgresql(url) else url.partition(":")[0]
    revisions = tables.rows(_REVISION_OF)
    return tables if len(revisions) == 1 and are_known(kind, revisions[0][0]) else None


def _tables(url: str) -> Tables | None:
    """Return the tables of a storage; None if its file is missing."""
    path = sqlite_path(url)
    if path is not None:
        return SqliteTables(url, path) if path.is_file() else None
    from autotune.storage.connection import ServerTables  # noqa: PLC0415  SQLAlchemy is for servers only

    return ServerTables(url)


def _studies(tables: Tables) -> tuple[dict[str, int], dict[int, dict[str, str]]]:
    """Return the keys of the studies by name, oldest first, and their stored attributes by key."""
    attributes: dict[int, dict[str, str]] = defaultdict(dict)
    for key, name, value in tables.rows(_ATTRIBUTES):
        attributes[key][name] = value
    return dict(tables.rows(_NAMES)), attributes
