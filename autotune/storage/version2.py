"""Version 2: runs are in a log of their own; a trial had one run, and kept its job and its outcome with it.

Not known of such a run: when it was started, on which host, how busy that was, how its iterations went. Nor which runs
were made close together in time, so each is in a block of its own, and none is compared with another as if they were.

The verdict was on the best trial of tuning, which had no rival; no precision was asked of it. Its pairs stay, the runs
that they came from were not kept.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from optuna.distributions import json_to_distribution

from autotune.storage.migration import Migration
from autotune.storage.oldtables import (
    DEFINITION,
    LOG,
    OURS,
    PARAMETERS,
    STUDY_ATTRIBUTES,
    TRIAL_ATTRIBUTES,
    TRIALS,
    Attribute,
    has_studies,
    remove,
    store,
    study_attributes,
)

_JOB, _OUTCOME, _VERDICT, _ABANDONED = "job", "outcome", "verdict", "abandoned"
_LEAST = {_JOB: {"argv", "resources"}, _OUTCOME: {"metrics", "failure", "usage"}}
"""What such an attribute has at least: another program may have one of that name."""

_UNKNOWN: Mapping[str, Any] = {"bound": None, "unused": [], "timeline": [], "conditions": {}}
# Older SQLites take a thousand values in a statement.
_AT_ONCE = 500


def _attributes(connection: sa.Connection, *keys: str) -> Iterator[sa.Row[Any]]:
    """Yield the trial, number, study and value of such attributes of trials, in the order in which the trials ended."""
    ours = sa.select(STUDY_ATTRIBUTES.c.study_id).where(STUDY_ATTRIBUTES.c.key == DEFINITION)
    found = (
        sa.select(TRIAL_ATTRIBUTES, TRIALS.c.number, TRIALS.c.study_id)
        .join(TRIALS, TRIALS.c.trial_id == TRIAL_ATTRIBUTES.c.trial_id)
        .where(TRIAL_ATTRIBUTES.c.key.in_(keys), TRIALS.c.study_id.in_(ours))
        .order_by(TRIALS.c.datetime_complete.is_(None), TRIALS.c.datetime_complete, TRIALS.c.trial_id)
    )
    for row in connection.execute(found).all():
        value = json.loads(row.value_json)
        if isinstance(value, dict) and value.keys() >= _LEAST[row.key]:
            yield row


def _old_verdicts(connection: sa.Connection) -> Iterator[Attribute]:
    for found in study_attributes(connection, _VERDICT):
        if isinstance(found.value, dict) and "winner" in found.value and "candidates" not in found.value:
            yield found


def _needed(connection: sa.Connection) -> bool:
    if not has_studies(connection):
        return False
    return any(True for _ in _attributes(connection, _OUTCOME)) or any(True for _ in _old_verdicts(connection))


def _apply(connection: sa.Connection) -> None:
    OURS.create_all(connection)
    for verdict in list(_old_verdicts(connection)):
        _complete(connection, verdict)
    kept = list(_attributes(connection, _JOB, _OUTCOME))
    jobs = {row.trial_id: json.loads(row.value_json) for row in kept if row.key == _JOB}
    outcomes = [row for row in kept if row.key == _OUTCOME]
    configurations = _configurations(connection, [row.trial_id for row in outcomes])
    blocks: dict[int, int] = defaultdict(int)
    for row in outcomes:
        record = {
            "configuration": configurations.get(row.trial_id, {}),
            "outcome": _UNKNOWN | json.loads(row.value_json),
            "block": blocks[row.study_id],
            "steps": None,
            "of": None,
            "started": "",
            "job": jobs.get(row.trial_id, {}),
            "session": {},
        }
        blocks[row.study_id] += 1
        told = json.dumps(record) if connection.dialect.name == "postgresql" else record
        values = {"study": row.study_id, "trial": row.number, "series": "", "round": 0, "record": told}
        connection.execute(sa.insert(LOG).values(values))
    # The job of a trial without an outcome is one that was lost: such a trial is run once more.
    gone = [row.trial_user_attribute_id for row in kept]
    for first in range(0, len(gone), _AT_ONCE):
        there = TRIAL_ATTRIBUTES.c.trial_user_attribute_id.in_(gone[first : first + _AT_ONCE])
        connection.execute(sa.delete(TRIAL_ATTRIBUTES).where(there))


def _configurations(connection: sa.Connection, trials: list[int]) -> dict[int, dict[str, Any]]:
    """Return the configurations of trials, by their ids."""
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for first in range(0, len(trials), _AT_ONCE):
        wanted = sa.select(PARAMETERS).where(PARAMETERS.c.trial_id.in_(trials[first : first + _AT_ONCE]))
        for row in connection.execute(wanted.order_by(PARAMETERS.c.param_id)):
            value = json_to_distribution(row.distribution_json).to_external_repr(row.param_value)
            found[row.trial_id][row.param_name] = value
    return found


def _complete(connection: sa.Connection, verdict: Attribute) -> None:
    """Add to a verdict what is known for sure; one on a trial that is not there says nothing."""
    changes = _changes(connection, verdict.study, verdict.value["winner"])
    if changes is None:
        remove(connection, verdict)
        return
    known = {"candidates": [verdict.value["winner"]], "changes": changes, "asked": None}
    store(connection, Attribute(verdict.row, verdict.study, verdict.value | known))


def _changes(connection: sa.Connection, study: int, winner: int) -> int | None:
    """Return in how many parameters a trial differs from the default, which is the first trial that was launched."""
    left = sa.select(TRIAL_ATTRIBUTES.c.trial_id).where(TRIAL_ATTRIBUTES.c.key == _ABANDONED)
    wanted = sa.select(TRIALS.c.number, TRIALS.c.trial_id).where(
        TRIALS.c.study_id == study, TRIALS.c.trial_id.not_in(left)
    )
    ids: dict[int, int] = {row.number: row.trial_id for row in connection.execute(wanted.order_by(TRIALS.c.number))}
    if winner not in ids:
        return None
    default = ids[min(ids)]
    both = _configurations(connection, [default, ids[winner]])
    one, other = both.get(default, {}), both.get(ids[winner], {})
    return len([name for name in {*one, *other} if one.get(name) != other.get(name)])


RUNS = Migration("runs that are kept with their trials", _needed, _apply)
