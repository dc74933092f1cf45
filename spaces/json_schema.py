"""The valid configurations of a space as a JSON schema for programs that write configurations, with rules in words."""

from collections.abc import Mapping
from typing import Any

from spaces.parameters.parameter import Flag, Float, Integer, Parameter
from spaces.space import Space

# Longer lists of values are described by their ends and their length.
_LISTED = 64


def json_schema(space: Space) -> dict[str, Any]:
    """Return the schema; its description says what JSON cannot express."""
    rules = [f"{rule.name}: {rule.rule} ({rule.reason})" for rule in space.constraints]
    facts = ", ".join(f"{name} = {value}" for name, value in space.facts.items())
    lines = ["A value for each parameter."]
    if rules:
        lines += ["Every one of these rules must hold:", *(f"- {rule}" for rule in rules)]
    if space.derived:
        lines += [f"- where {name} = {expression}" for name, expression in space.derived.items()]
    if facts:
        lines.append(f"Known in rules: {facts}.")
    return {
        "type": "object",
        "description": "\n".join(lines),
        "properties": {parameter.name: _property(parameter) for parameter in space.parameters},
        "required": [parameter.name for parameter in space.parameters if not parameter.may_be_missing],
        "additionalProperties": False,
    }


def _property(parameter: Parameter) -> Mapping[str, Any]:
    words = [parameter.help] if parameter.help else []
    if parameter.when is not None:
        words.append(f"only where {parameter.when}")
    if parameter.optional:
        words.append("may be left out: then the program decides")
    values = parameter.values
    if isinstance(parameter, Flag):
        kind: dict[str, Any] = {"type": "boolean"}
    elif len(values) <= _LISTED:
        kind = {"enum": list(values)}
    elif isinstance(parameter, Integer | Float):
        kind = {
            "type": "integer" if isinstance(parameter, Integer) else "number",
            "minimum": values[0],
            "maximum": values[-1],
        }
        shown = ", ".join(map(str, values[:3]))
        words.append(f"one of {len(values)} values: {shown}, ..., {values[-1]}")
    else:
        kind = {"enum": list(values)}
    return kind | ({"description": "; ".join(words)} if words else {})
