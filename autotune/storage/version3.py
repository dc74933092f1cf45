"""Version 3: an ablation tells the default's value, and the winner's speed-up in the same rounds; that was not kept.

`autotune ablate` works both out again from the runs.
"""

from collections.abc import Iterator

import sqlalchemy as sa

from autotune.storage.migration import Migration
from autotune.storage.oldtables import Attribute, has_studies, store, study_attributes

_ABLATION = "ablation"
_UNKNOWN = {"baseline": None, "combined": None}


def _old(connection: sa.Connection) -> Iterator[Attribute]:
    for found in study_attributes(connection, _ABLATION):
        if isinstance(found.value, dict) and not found.value.keys() >= _UNKNOWN.keys():
            yield found


def _needed(connection: sa.Connection) -> bool:
    return has_studies(connection) and any(True for _ in _old(connection))


def _apply(connection: sa.Connection) -> None:
    for found in list(_old(connection)):
        store(connection, Attribute(found.row, found.study, _UNKNOWN | found.value))


ABLATIONS = Migration("ablations without the default's value", _needed, _apply)
