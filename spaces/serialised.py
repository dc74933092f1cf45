"""Exact conversion of a space to JSON's terms and back, for storing and comparing it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from spaces.parameters.constraint import Constraint
from spaces.parameters.errors import SpaceError
from spaces.parameters.listed import Listed
from spaces.parameters.parameter import Choice, Flag, Float, Integer, Parameter, Value

_KINDS: dict[str, Callable[..., Parameter]] = {
    "integer": Integer,
    "float": Float,
    "choice": Choice,
    "flag": Flag,
}


def to_dict(
    parameters: Sequence[Parameter],
    constraints: Sequence[Constraint],
    facts: Mapping[str, Value],
    derived: Mapping[str, str],
) -> dict[str, Any]:
    """Return the parts of a space as lists, dictionaries, numbers and strings."""
    return {
        "parameters": [_parameter_to_dict(parameter) for parameter in parameters],
        "constraints": [_constraint_to_dict(constraint) for constraint in constraints],
        "facts": dict(facts),
        **({"derived": dict(derived)} if derived else {}),
    }


def from_dict(
    stored: Mapping[str, Any],
) -> tuple[tuple[Parameter, ...], tuple[Constraint, ...], Mapping[str, Value], Mapping[str, str]]:
    """Return the parts of the space that `to_dict` wrote.

    Raises:
        SpaceError: The values were not written by `to_dict`.
    """
    try:
        parameters = tuple(_parameter_from_dict(entry) for entry in stored["parameters"])
        constraints = tuple(_constraint_from_dict(entry) for entry in stored["constraints"])
        return parameters, constraints, dict(stored["facts"]), dict(stored.get("derived", {}))
    except (KeyError, TypeError, AttributeError) as error:
        raise SpaceError(f"this is not a stored space: {type(error).__name__}: {error}") from error


def _constraint_to_dict(constraint: Constraint) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": constraint.name, "rule": constraint.rule, "reason": constraint.reason}
    if isinstance(constraint, Listed):
        entry["parameters"] = list(constraint.parameters)
        entry["columns"] = [list(values) for values in constraint.columns]
        entry["rows"] = [list(row) for row in constraint.rows]
    return entry


def _constraint_from_dict(entry: Mapping[str, Any]) -> Constraint:
    if "rows" not in entry:
        return Constraint(**entry)
    columns, rows = (tuple(tuple(part) for part in entry[key]) for key in ("columns", "rows"))
    return Listed(**{**entry, "parameters": tuple(entry["parameters"]), "columns": columns, "rows": rows})


def _parameter_to_dict(parameter: Parameter) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": type(parameter).__name__.lower()}
    for part in fields(parameter):
        value = getattr(parameter, part.name)
        if part.name == "listed" and not value:
            continue
        entry[part.name] = list(value) if isinstance(value, tuple) else value
    return entry


def _parameter_from_dict(entry: Mapping[str, Any]) -> Parameter:
    parts = dict(entry)
    kind = _KINDS[parts.pop("type")]
    return kind(**parts)
