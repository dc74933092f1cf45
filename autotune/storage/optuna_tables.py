"""Optuna's tables as far as they are known here, to be read and written without Optuna."""

import json
from collections.abc import Callable
from functools import cache
from importlib.metadata import version as installed
from typing import Any

# What these tables look like, and what their columns mean: Optuna's `storages/_rdb/models.py`. A migration of them has
# a new revision; that times are UTC in them is new in the major version.
_REVISION = "v3.2.0.a"
_MAJOR = "5"
_DIALECTS = frozenset({"sqlite", "postgresql"})


def are_known(dialect: str, revision: str | None) -> bool:
    """Return whether tables of a `revision` in a database of that kind are those that are known."""
    return dialect in _DIALECTS and revision == _REVISION and installed("optuna").partition(".")[0] == _MAJOR


@cache
def parameter_reader(distribution: str) -> Callable[[float], Any]:
    """Return what turns the stored number of a parameter into its value; `distribution` is as it is stored."""
    described = json.loads(distribution)
    match described.get("name"):
        case "CategoricalDistribution":
            choices = described["attributes"]["choices"]
            return lambda stored: choices[int(stored)]
        case "IntDistribution":
            return int
        case "FloatDistribution":
            return float
    # An abbreviated one, or one of an older Optuna.
    from optuna.distributions import json_to_distribution  # noqa: PLC0415  others are read without Optuna

    return json_to_distribution(distribution).to_external_repr
