"""Space definitions of the schema T1: parameters with their values and defaults, and conditions over them.

Source: FAIR sharing of autotuning spaces, `ConfigurationSpace` of Kernel Tuner's and KTT's T1 files.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from objectives.base import PlanError
from objectives.replay.domains import parameter_of
from spaces import Constraint, Parameter, Value
from spaces.parameters.problem import Problem

_SHOWN = 60
_REASON = "a condition of the T1 file"


@dataclass(frozen=True)
class Definition:
    """The space of a file; `default` is None if the file has no complete one."""

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    facts: Mapping[str, Value]
    default: Mapping[str, Value] | None


def read_t1(document: Mapping[str, Any]) -> Definition:
    """Return the space of a T1 file.

    Raises:
        PlanError: It has errors; all are reported.
    """
    stored = document["ConfigurationSpace"]
    errors: list[Problem] = []
    parameters: list[Parameter] = []
    default: dict[str, Value] = {}
    for place, entry in enumerate(stored.get("TuningParameters") or ()):
        where = f"ConfigurationSpace.TuningParameters[{place}]"
        try:
            name, values = str(entry["Name"]), _values(entry["Values"])
        except (KeyError, TypeError, ValueError, SyntaxError) as error:
            wrong = f"a parameter has `Name` and a list as `Values`: {error!r}, {where}"
            errors.append(Problem(wrong, "options.space"))
            continue
        given = entry.get("Default")
        chosen = given if given in values else values[0]
        if given in values:
            default[name] = chosen
        parameters.append(parameter_of(name, name, values, chosen))
    if not parameters and not errors:
        errors.append(Problem("a T1 file has `ConfigurationSpace.TuningParameters`", "options.space"))
    if errors:
        raise PlanError(errors)
    constraints = tuple(
        Constraint(f"condition {number}", str(condition["Expression"]), _REASON)
        for number, condition in enumerate(stored.get("Conditions") or (), 1)
    )
    complete = len(default) == len(parameters)
    return Definition(tuple(parameters), constraints, {}, default if complete else None)


def _values(given: object) -> list[Value]:
    """Return the values of a parameter: a list, or a text with a literal list."""
    try:
        found = ast.literal_eval(given) if isinstance(given, str) else given
    except (MemoryError, RecursionError):
        found = None  # nested too deeply
    if not isinstance(found, list | tuple) or not found:
        msg = f"no values in {str(given)[:_SHOWN]!r}"
        raise ValueError(msg)
    return list(found)
