"""The tables that migrations read and write, as they were then: what changes elsewhere must not change these."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

DEFINITION = "definition"
"""The attribute of studies that autotune made."""

METADATA = sa.MetaData()
TRIALS = sa.Table(
    "trials",
    METADATA,
    sa.Column("trial_id", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer),
    sa.Column("study_id", sa.Integer),
    sa.Column("datetime_complete", sa.DateTime),
)
PARAMETERS = sa.Table(
    "trial_params",
    METADATA,
    sa.Column("param_id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.Integer),
    sa.Column("param_name", sa.String),
    sa.Column("param_value", sa.Double),
    sa.Column("distribution_json", sa.Text),
)
TRIAL_ATTRIBUTES = sa.Table(
    "trial_user_attributes",
    METADATA,
    sa.Column("trial_user_attribute_id", sa.Integer, primary_key=True),
    sa.Column("trial_id", sa.Integer),
    sa.Column("key", sa.String),
    sa.Column("value_json", sa.Text),
)
STUDY_ATTRIBUTES = sa.Table(
    "study_user_attributes",
    METADATA,
    sa.Column("study_user_attribute_id", sa.Integer, primary_key=True),
    sa.Column("study_id", sa.Integer),
    sa.Column("key", sa.String),
    sa.Column("value_json", sa.Text),
)
OURS = sa.MetaData()
LOG = sa.Table(
    "autotune_runs",
    OURS,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.Integer, nullable=False, index=True),
    sa.Column("trial", sa.Integer),
    sa.Column("series", sa.String(200), nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("record", sa.JSON().with_variant(sa.Text(), "postgresql"), nullable=False),
)


@dataclass(frozen=True)
class Attribute:
    """An attribute of a study, by the number of its row."""

    row: int
    study: int
    value: Any


def has_studies(connection: sa.Connection) -> bool:
    """Return whether the tables of Optuna are there that are read here."""
    there = sa.inspect(connection)
    return all(there.has_table(name) for name in METADATA.tables)


def study_attributes(connection: sa.Connection, key: str) -> Iterator[Attribute]:
    """Yield that attribute of every study that autotune made."""
    ours = sa.select(STUDY_ATTRIBUTES.c.study_id).where(STUDY_ATTRIBUTES.c.key == DEFINITION)
    wanted = sa.select(STUDY_ATTRIBUTES).where(STUDY_ATTRIBUTES.c.key == key, STUDY_ATTRIBUTES.c.study_id.in_(ours))
    for row in connection.execute(wanted.order_by(STUDY_ATTRIBUTES.c.study_user_attribute_id)).all():
        yield Attribute(row.study_user_attribute_id, row.study_id, json.loads(row.value_json))


def store(connection: sa.Connection, attribute: Attribute) -> None:
    """Write the value of an attribute that is there."""
    there = STUDY_ATTRIBUTES.c.study_user_attribute_id == attribute.row
    connection.execute(sa.update(STUDY_ATTRIBUTES).where(there).values(value_json=json.dumps(attribute.value)))


def remove(connection: sa.Connection, attribute: Attribute) -> None:
    """Remove an attribute."""
    there = STUDY_ATTRIBUTES.c.study_user_attribute_id == attribute.row
    connection.execute(sa.delete(STUDY_ATTRIBUTES).where(there))
