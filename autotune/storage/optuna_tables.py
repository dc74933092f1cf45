"""The versions of Optuna's tables that autotune reads and writes without Optuna."""

import json
from collections.abc import Callable
from functools import cache
from importlib.metadata import version as installed
from typing import Any

# Optuna's `storages/_rdb/models.py` defines these tables. A migration gives them a new revision. Their times are in UTC
# since the major version below.
_REVISION = "v3.2.0.a"
_MAJOR = "5"
_DIALECTS = frozenset({"sqlite", "postgresql"})


def are_known(dialect: str, revision: str | None) -> bool:
    """Return whether autotune knows Optuna's tables of this revision in this kind of database."""
    return dialect in _DIALECTS and revision == _REVISION and installed("optuna").partition(".")[0] == _MAJOR


@cache
def parameter_reader(distribution: str) -> Callable[[float], Any]:
    """Return the function from a parameter's stored number to its value, for the stored JSON of a distribution."""
    described = json.loads(distribution)
    match described.get("name"):
        case "CategoricalDistribution":
            choices = described["attributes"]["choices"]
            return lambda stored: choices[int(stored)]
        case "IntDistribution":
            return int
        case "FloatDistribution":
            return float
    # An abbreviated distribution, or that of an older Optuna.
    from optuna.distributions import json_to_distribution  # noqa: PLC0415  others are read without Optuna

    return json_to_distribution(distribution).to_external_repr
