"""Writing Optuna's trials: creating and ending many at a time.

Optuna needs several transactions for one trial, since it reads the trial again before it stores each parameter. So
known versions of its tables are written directly: the rows that Optuna would write, under the locks that it takes, in
one transaction. Other tables are written through Optuna.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

import sqlalchemy as sa
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.storages import BaseStorage, RDBStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.storage.observation import BOUND, Observation
from autotune.storage.optuna_tables import are_known
from spaces import Configuration

_METADATA = sa.MetaData()
_STUDIES = sa.Table("studies", _METADATA, sa.Column("study_id", sa.Integer, primary_key=True))
TRIALS = sa.Table(
    "trials",
    _METADATA,
    sa.Column("trial_id", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer),
    sa.Column("study_id", sa.Integer),
    sa.Column("state", sa.Enum(TrialState)),
    sa.Column("datetime_start", sa.DateTime),
    sa.Column("datetime_complete", sa.DateTime),
)
_PARAMETERS = sa.Table(
    "trial_params",
    _METADATA,
    sa.Column("param_id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.Integer),
    sa.Column("param_name", sa.String),
    sa.Column("param_value", sa.Double),
    sa.Column("distribution_json", sa.Text),
)
TRIAL_ATTRIBUTES = sa.Table(
    "trial_user_attributes",
    _METADATA,
    sa.Column("trial_user_attribute_id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.Integer),
    sa.Column("key", sa.String),
    sa.Column("value_json", sa.Text),
)
VALUES = sa.Table(
    "trial_values",
    _METADATA,
    sa.Column("trial_value_id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.Integer),
    sa.Column("objective", sa.Integer),
    sa.Column("value", sa.Double),
    sa.Column("value_type", sa.Enum("FINITE", "INF_POS", "INF_NEG", name="trialvaluetype")),
)
_OPEN = (TrialState.RUNNING, TrialState.WAITING)
# Older versions of SQLite allow a thousand values in a statement.
_AT_ONCE = 500


@dataclass(frozen=True)
class TrialEnding:
    """The end of a trial for Optuna: complete with a finite `value`, pruned at a `bound`, or failed."""

    state: TrialState
    value: float | None = None
    bound: float | None = None

    @classmethod
    def of(cls, observation: Observation) -> "TrialEnding":
        """Return the ending for an observation; a partial value counts as a bound."""
        bound = observation.value if observation.partial else observation.bound
        if bound is not None:
            return cls(TrialState.PRUNED, bound=bound)
        if observation.value is not None:
            return cls(TrialState.COMPLETE, value=observation.value)
        return cls(TrialState.FAIL)

    @classmethod
    def of_trial(cls, trial: FrozenTrial) -> "TrialEnding":
        """Return the ending of a finished trial."""
        value = trial.value if trial.state is TrialState.COMPLETE else None
        return cls(trial.state, value, trial.user_attrs.get(BOUND) if trial.state is TrialState.PRUNED else None)


def as_open(trial: FrozenTrial) -> FrozenTrial:
    """Return a trial as it was before its end."""
    if not trial.state.is_finished():
        return trial
    before = copy.copy(trial)
    before.state, before.values, before.datetime_complete = TrialState.RUNNING, None, None
    return before


class TrialTable(Protocol):
    """Writes the trials of one study."""

    def create(
        self, configurations: Sequence[Configuration], distributions: Mapping[str, BaseDistribution]
    ) -> list[tuple[int, int]]:
        """Store new running trials, each atomically; return their numbers and ids."""

    def end_trials(self, endings: Mapping[int, TrialEnding]) -> None:
        """End trials, by id; skip those that have ended before."""

    def count(self) -> int:
        """Return the number of trials in all states."""


def trial_table(storage: BaseStorage, study_id: int) -> TrialTable:
    """Return the fastest writer of trials that is safe for this storage."""
    if isinstance(storage, RDBStorage) and are_known(storage.engine.dialect.name, storage.get_current_version()):
        return SqlTrialTable(storage.engine, study_id)
    return AnyTrialTable(storage, study_id)


class SqlTrialTable:
    """Writes to Optuna's tables directly."""

    def __init__(self, engine: sa.Engine, study_id: int) -> None:
        """Use the tables behind `engine`, which must be of the known revision."""
        self._engine = engine
        self._study = study_id
        self._described: dict[str, tuple[BaseDistribution, str]] = {}

    def create(
        self, configurations: Sequence[Configuration], distributions: Mapping[str, BaseDistribution]
    ) -> list[tuple[int, int]]:
        """Store new running trials in one transaction."""
        if not configurations:
            return []
        newest = sa.select(TRIALS.c.number).where(TRIALS.c.study_id == self._study)
        with self._lock_study() as connection:
            last = connection.scalar(newest.order_by(TRIALS.c.trial_id.desc()).limit(1))
            first = 0 if last is None else int(last) + 1
            numbers = range(first, first + len(configurations))
            ids = [self._add(connection, number) for number in numbers]
            _insert(
                connection,
                _PARAMETERS,
                [
                    {
                        "trial_id": trial_id,
                        "param_name": name,
                        "param_value": distributions[name].to_internal_repr(value),
                        "distribution_json": self._distribution_json(name, distributions[name]),
                    }
                    for trial_id, configuration in zip(ids, configurations, strict=True)
                    for name, value in configuration.items()
                ],
            )
        return list(zip(numbers, ids, strict=True))

    def end_trials(self, endings: Mapping[int, TrialEnding]) -> None:
        """End trials in one transaction."""
        ids = list(endings)
        if not ids:
            return
        with self._lock_study() as connection:
            for first in range(0, len(ids), _AT_ONCE):
                self._end_some(connection, endings, ids[first : first + _AT_ONCE])

    def count(self) -> int:
        """Return the number of trials in all states."""
        wanted = sa.select(sa.func.count()).select_from(TRIALS).where(TRIALS.c.study_id == self._study)
        with self._engine.connect() as connection:
            return int(connection.scalar(wanted) or 0)

    def _add(self, connection: sa.Connection, number: int) -> int:
        row = {"number": number, "study_id": self._study, "state": TrialState.RUNNING, "datetime_start": _now()}
        key = connection.execute(sa.insert(TRIALS).values(row)).inserted_primary_key
        assert key is not None
        return int(key[0])

    def _end_some(self, connection: sa.Connection, endings: Mapping[int, TrialEnding], ids: Sequence[int]) -> None:
        wanted = sa.select(TRIALS.c.trial_id).where(TRIALS.c.trial_id.in_(ids), TRIALS.c.state.in_(_OPEN))
        found = {trial_id: endings[trial_id] for trial_id in connection.scalars(wanted.with_for_update())}
        for state in {one.state for one in found.values()}:
            ended = [trial_id for trial_id, one in found.items() if one.state is state]
            change = sa.update(TRIALS).where(TRIALS.c.trial_id.in_(ended))
            connection.execute(change.values(state=state, datetime_complete=_now()))
        _insert(
            connection,
            VALUES,
            [
                {"trial_id": trial_id, "objective": 0, "value": one.value, "value_type": "FINITE"}
                for trial_id, one in found.items()
                if one.value is not None
            ],
        )
        bounds = [_attribute(trial_id, BOUND, one.bound) for trial_id, one in found.items() if one.bound is not None]
        if bounds:
            # A process that was killed between storing a bound and ending the trial left an old bound.
            old = TRIAL_ATTRIBUTES.c.trial_id.in_([one["trial_id"] for one in bounds])
            connection.execute(sa.delete(TRIAL_ATTRIBUTES).where(old, TRIAL_ATTRIBUTES.c.key == BOUND))
        _insert(connection, TRIAL_ATTRIBUTES, bounds)

    @contextmanager
    def _lock_study(self) -> Iterator[sa.Connection]:
        """Provide a transaction that keeps others from creating trials of the study, by the lock that Optuna takes."""
        with self._engine.begin() as connection:
            if self._engine.dialect.name == "sqlite":
                # A transaction that begins as a reader cannot become a writer once another process has written.
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            else:
                connection.execute(
                    sa.select(_STUDIES.c.study_id).where(_STUDIES.c.study_id == self._study).with_for_update()
                )
            yield connection

    def _distribution_json(self, name: str, distribution: BaseDistribution) -> str:
        known = self._described.get(name)
        if known is None or known[0] is not distribution:
            known = self._described[name] = (distribution, distribution_to_json(distribution))
        return known[1]


class AnyTrialTable:
    """Writes through Optuna, to any storage."""

    def __init__(self, storage: BaseStorage, study_id: int) -> None:
        """Write to `storage`."""
        self._storage = storage
        self._study = study_id

    def create(
        self, configurations: Sequence[Configuration], distributions: Mapping[str, BaseDistribution]
    ) -> list[tuple[int, int]]:
        """Store new running trials, each atomically."""
        templates = [
            create_trial(
                state=TrialState.RUNNING,
                params=dict(configuration),
                distributions={name: distributions[name] for name in configuration},
            )
            for configuration in configurations
        ]
        ids = [self._storage.create_new_trial(self._study, template) for template in templates]
        return [(self._storage.get_trial_number_from_id(trial_id), trial_id) for trial_id in ids]

    def end_trials(self, endings: Mapping[int, TrialEnding]) -> None:
        """End trials that have not ended yet."""
        for trial_id, one in endings.items():
            if self._storage.get_trial(trial_id).state.is_finished():
                continue
            if one.bound is not None:
                self._storage.set_trial_user_attr(trial_id, BOUND, one.bound)
            values = None if one.value is None else [one.value]
            self._storage.set_trial_state_values(trial_id, one.state, values)

    def count(self) -> int:
        """Return the number of trials in all states."""
        return self._storage.get_n_trials(self._study)


def _insert(connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)


def _attribute(trial_id: int, key: str, value: object) -> dict[str, Any]:
    return {"trial_id": trial_id, "key": key, "value_json": json.dumps(value)}


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)
