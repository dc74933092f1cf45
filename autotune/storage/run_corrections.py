"""Corrections of runs that have ended, in one transaction.

While a study runs, its storage only grows. A correction replaces the outcome of a run that was read wrongly, or sets
aside a run that should no longer count. It reopens the affected trials, in Optuna's tables too, so that a session
judges them again.
"""

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from optuna.trial import TrialState

from autotune.records.outcome import Outcome
from autotune.records.series import Series
from autotune.storage.observation import BOUND
from autotune.storage.readable_study import CORRECTED
from autotune.storage.run_log import RUNS
from autotune.storage.trial_table import TRIAL_ATTRIBUTES, TRIALS, VALUES

_ATTRIBUTES = sa.Table(
    "study_user_attributes",
    sa.MetaData(),
    sa.Column("study_user_attribute_id", sa.Integer, primary_key=True),
    sa.Column("study_id", sa.Integer),
    sa.Column("key", sa.String),
    sa.Column("value_json", sa.Text),
)


@dataclass(frozen=True)
class RunCorrections:
    """The changes of one transaction.

    Attributes:
        outcomes: New outcomes of runs, by the runs' keys in the log.
        aside: The keys of the runs to set aside.
        reopened: The numbers of the trials to reopen.
        attributes: The study's attributes that change; None removes an attribute.
    """

    outcomes: Mapping[int, Outcome] = field(default_factory=dict)
    aside: Collection[int] = ()
    reopened: Collection[int] = ()
    attributes: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)


def correct_runs(engine: sa.Engine, study_id: int, key: str, corrections: RunCorrections) -> None:
    """Apply all of the corrections, or none, to the study whose runs have this `key`."""
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            # A transaction that begins as a reader cannot become a writer once another process has written.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        _change_runs(connection, key, corrections)
        _reopen(connection, study_id, corrections.reopened)
        corrected = {CORRECTED: {"tokens": [*_tokens(connection, study_id), secrets.token_hex(4)]}}
        _set_attributes(connection, study_id, {**corrections.attributes, **corrected})


def _tokens(connection: sa.Connection, study_id: int) -> list[str]:
    """Return the tokens of earlier corrections, by which a merge finds the copy that was corrected last."""
    wanted = sa.select(_ATTRIBUTES.c.value_json)
    text = connection.scalar(wanted.where(_ATTRIBUTES.c.study_id == study_id, _ATTRIBUTES.c.key == CORRECTED))
    return [] if text is None else list(json.loads(text)["tokens"])


def _change_runs(connection: sa.Connection, study: str, corrections: RunCorrections) -> None:
    keys = {*corrections.outcomes, *corrections.aside}
    rows = connection.execute(sa.select(RUNS).where(RUNS.c.study == study)).all() if keys else ()
    for row in rows:
        if row.id not in keys:
            continue
        change = sa.update(RUNS).where(RUNS.c.id == row.id)
        outcome = corrections.outcomes.get(row.id)
        if outcome is not None:
            connection.execute(change.values(record={**row.record, "outcome": outcome.to_dict()}))
        if row.id in corrections.aside:
            connection.execute(change.values(series=str(Series.parse(row.series).aside)))


def _reopen(connection: sa.Connection, study_id: int, numbers: Collection[int]) -> None:
    for number in numbers:
        wanted = sa.select(TRIALS.c.trial_id).where(TRIALS.c.study_id == study_id, TRIALS.c.number == number)
        key = connection.scalar(wanted)
        change = sa.update(TRIALS).where(TRIALS.c.trial_id == key)
        connection.execute(change.values(state=TrialState.RUNNING, datetime_complete=None))
        connection.execute(sa.delete(VALUES).where(VALUES.c.trial_id == key))
        bound = TRIAL_ATTRIBUTES.c.trial_id == key, TRIAL_ATTRIBUTES.c.key == BOUND
        connection.execute(sa.delete(TRIAL_ATTRIBUTES).where(*bound))


def _set_attributes(
    connection: sa.Connection, study_id: int, attributes: Mapping[str, Mapping[str, Any] | None]
) -> None:
    old = _ATTRIBUTES.c.study_id == study_id, _ATTRIBUTES.c.key.in_(list(attributes))
    connection.execute(sa.delete(_ATTRIBUTES).where(*old))
    rows = [
        {"study_id": study_id, "key": key, "value_json": json.dumps(value)}
        for key, value in attributes.items()
        if value is not None
    ]
    if rows:
        connection.execute(sa.insert(_ATTRIBUTES), rows)
