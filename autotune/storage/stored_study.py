"""Studies as they are stored, for reading only: without Optuna, which takes longer to open than the rest to read.

Where Optuna's tables are those that are known, they are read directly. Elsewhere Optuna is asked.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from autotune.errors import StorageError
from autotune.records.study import Definition, Run, TrialRecord
from autotune.storage.address import shown
from autotune.storage.connection import storage_errors, tables_engine
from autotune.storage.optuna_tables import are_known, reader_of, revision_of
from autotune.storage.readable import ABANDONED, DEFINITION, ReadableStudy, runs_of_tuning
from autotune.storage.run_log import SqlRunLog
from autotune.storage.schema import check_studies

_STUDIES = sa.table("studies", sa.column("study_id"), sa.column("study_name"))
_ATTRIBUTES = sa.table("study_user_attributes", sa.column("study_id"), sa.column("key"), sa.column("value_json"))
_TRIALS = sa.table("trials", sa.column("trial_id"), sa.column("number"), sa.column("study_id"), sa.column("state"))
_PARAMETERS = sa.table(
    "trial_params",
    sa.column("param_id"),
    sa.column("trial_id"),
    sa.column("param_name"),
    sa.column("param_value"),
    sa.column("distribution_json"),
)
_MARKS = sa.table("trial_user_attributes", sa.column("trial_id"), sa.column("key"))
_OPEN = frozenset({"RUNNING", "WAITING"})


class StoredStudy:
    """One study in tables that are known. Its definition and attributes are those at the time when it was opened."""

    def __init__(self, url: str, engine: sa.Engine, key: int, name: str, attributes: Mapping[str, Any]) -> None:
        """Wrap a study and its attributes; use `stored_study` or `stored_studies`."""
        self._url = url
        self._engine = engine
        self._key = key
        self._name = name
        self._attributes = attributes

    @property
    def name(self) -> str:
        """The study's name."""
        return self._name

    @property
    def definition(self) -> Definition:
        """What the study is about."""
        return Definition.from_dict(self._attributes[DEFINITION])

    def attribute(self, name: str) -> Mapping[str, Any] | None:
        """Return what was stored of a comparison; None where nothing was."""
        found: Mapping[str, Any] | None = self._attributes.get(name)
        return found

    def runs(self) -> list[Run]:
        """Return every run of the study, in the order in which they ended."""
        with storage_errors(self._url):
            return SqlRunLog(self._engine, self._key).runs()

    def trials(self) -> list[TrialRecord]:
        """Return every trial that was proposed, by number, with those of its runs that count."""
        runs = runs_of_tuning(self.runs())
        own = sa.select(_TRIALS.c.trial_id).where(_TRIALS.c.study_id == self._key)
        abandoned = sa.select(_MARKS.c.trial_id).where(_MARKS.c.trial_id.in_(own), _MARKS.c.key == ABANDONED)
        trials = sa.select(_TRIALS.c.trial_id, _TRIALS.c.number, sa.cast(_TRIALS.c.state, sa.String).label("state"))
        trials = trials.where(_TRIALS.c.study_id == self._key, _TRIALS.c.trial_id.not_in(abandoned))
        parameters = sa.select(_PARAMETERS).where(_PARAMETERS.c.trial_id.in_(own)).order_by(_PARAMETERS.c.param_id)
        values: dict[int, dict[str, Any]] = defaultdict(dict)
        with storage_errors(self._url), self._engine.connect() as connection:
            found = connection.execute(trials.order_by(_TRIALS.c.number)).all()
            for row in connection.execute(parameters):
                values[row.trial_id][row.param_name] = reader_of(row.distribution_json)(row.param_value)
        return [
            TrialRecord.of(row.number, values[row.trial_id], runs[row.number], settled=row.state not in _OPEN)
            for row in found
        ]


def stored_study(url: str, name: str) -> ReadableStudy:
    """Open the study called `name` for reading only.

    Raises:
        StorageError: storage cannot be read, or there is no such study.
    """
    with storage_errors(url):
        engine = _known_tables(url)
        if engine is None:
            from autotune.storage.study_store import StudyStore  # noqa: PLC0415  importing Optuna takes a while

            return StudyStore.read(url, name)
        keys, attributes = _studies(engine)
        if name not in keys:
            msg = f"no study {name!r} in {shown(url)}; there: {', '.join(keys) or 'none'}"
            raise StorageError(msg)
        found = attributes[keys[name]]
        if DEFINITION not in found:
            msg = f"study {name!r} in {shown(url)} was not made by autotune, or was interrupted while it was made"
            raise StorageError(msg)
        return StoredStudy(url, engine, keys[name], name, _decoded(found))


def stored_studies(url: str) -> list[ReadableStudy]:
    """Open all studies of a storage for reading only, but those of other programs, and those that were half made.

    Raises:
        StorageError: storage cannot be read.
    """
    with storage_errors(url):
        engine = _known_tables(url)
        if engine is None:
            from autotune.storage.study_store import StudyStore, study_names  # noqa: PLC0415  as above

            opened = (StudyStore.read_if_ours(url, name) for name in study_names(url))
            return [store for store in opened if store is not None]
        keys, attributes = _studies(engine)
        return [
            StoredStudy(url, engine, key, name, _decoded(attributes[key]))
            for name, key in keys.items()
            if DEFINITION in attributes[key]
        ]


def _known_tables(url: str) -> sa.Engine | None:
    """Return an engine that reads a storage; None if its tables are not those that are known here."""
    engine = tables_engine(url)
    with engine.connect() as connection:
        check_studies(connection, url)
        if are_known(engine.dialect.name, revision_of(connection)):
            return engine
    engine.dispose()
    return None


def _studies(engine: sa.Engine) -> tuple[dict[str, int], dict[int, dict[str, str]]]:
    """Return the keys of the studies by name, in the order in which they were made, and their stored attributes."""
    attributes: dict[int, dict[str, str]] = defaultdict(dict)
    with engine.connect() as connection:
        studies = connection.execute(sa.select(_STUDIES).order_by(_STUDIES.c.study_id))
        keys = {str(row.study_name): int(row.study_id) for row in studies}
        for row in connection.execute(sa.select(_ATTRIBUTES)):
            attributes[row.study_id][row.key] = row.value_json
    return keys, attributes


def _decoded(attributes: Mapping[str, str]) -> dict[str, Any]:
    return {key: json.loads(value) for key, value in attributes.items()}
