"""Pydantic's errors in a table that a user wrote, as problems with paths."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from objectives.toml_text import quoted
from spaces.parameters.errors import unknown_key
from spaces.parameters.problem import Problem

_RULES = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "literal_error": "{expected}",
}
# By the kind of value that is wanted.
_UNQUOTED = {
    "int": re.compile(r"[+-]?[0-9]+"),
    "float": re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"),
    "bool": re.compile("true|false"),
}


def problems_in(error: ValidationError, model: type[BaseModel], given: object, under: str = "") -> list[Problem]:
    """Return what is wrong with the table `given` that `model` describes; `under` is the path of the table."""
    return [problem_of(item, model, under) for item in errors_in(error, given)]


def errors_in(error: ValidationError, given: object) -> Iterator[Mapping[str, Any]]:
    """Yield pydantic's errors in the table `given`, one for each value.

    Pydantic has an error for each kind that a value may be, and puts the kind into its location.
    """
    of_value: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for item in error.errors(include_url=False):
        location, end = _places(item, given)
        of_value.setdefault(item["loc"][:end], []).append({**item, "loc": location})
    for outer, found in of_value.items():
        # An error deeper in the value shows which kind was meant.
        deeper = [one for one in found if len(one["loc"]) > len(outer)]
        by_place: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for one in deeper or found:
            by_place.setdefault(one["loc"], []).append(one)
        yield from map(_merge, by_place.values())


def _places(item: Mapping[str, Any], given: object) -> tuple[tuple[Any, ...], int]:
    """Return an error's location without kinds, and how many places are before the first kind."""
    kinds, value = [], given
    for i, part in enumerate(item["loc"]):
        if (isinstance(value, Mapping) and part in value) or (isinstance(value, list) and isinstance(part, int)):
            value = value[part]
        elif item["type"] != "missing" or i < len(item["loc"]) - 1:
            kinds.append(i)
    return tuple(part for i, part in enumerate(item["loc"]) if i not in kinds), min(kinds, default=len(item["loc"]))


def _merge(items: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the error of a value that is of none of its kinds; if it is of one kind, the error of that one."""
    of_kind = [item for item in items if not item["type"].endswith("_type")]
    rules = dict.fromkeys(rule_of(item) or "" for item in items)
    if of_kind or "" in rules or len(items) == 1:
        return (of_kind or items)[0]
    if "a number" in rules:
        rules.pop("a whole number", None)
    return {**items[-1], "rule": " or ".join(rules)}


def problem_of(item: Mapping[str, Any], model: type[BaseModel], under: str = "") -> Problem:
    """Convert one error of pydantic; `under` is the path of the table that `model` describes."""
    *outer, key = [*([under] if under else []), *map(str, item["loc"])] or [""]
    path = ".".join([*outer, key])
    if item["type"] == "extra_forbidden":
        return unknown_key(".".join(outer), key, _keys_at(item["loc"][:-1], model))
    if item["type"] == "missing":
        return Problem("required field missing", path)
    given, rule = item["input"], item.get("rule") or rule_of(item)
    message = item["msg"].removeprefix("Value error, ") if rule is None else f"must be {rule}"
    if _is_nested(given):
        return Problem(message, path)
    if not isinstance(given, str):
        return Problem(f"{message}, got {given!r}", path)
    hint = ": leave out the quotes" if _is_quoted(given, item["type"]) else ""
    return Problem(f"{message}, got {quoted(given)}{hint}", path)


def rule_of(item: Mapping[str, Any]) -> str | None:
    """Return what a value must be, by one error of pydantic: "at least 3"; None for the rarer kinds of errors."""
    rule = _RULES.get(item["type"])
    return None if rule is None else rule.format(**{name: _plain(value) for name, value in item.get("ctx", {}).items()})


def _plain(value: object) -> object:
    """Return a whole float as an int: pydantic writes the limit 0 of a float as 0.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_quoted(text: str, kind: str) -> bool:
    """Whether a text would be right without its quotes."""
    pattern = _UNQUOTED.get(kind.partition("_")[0])
    return kind.endswith("_type") and pattern is not None and pattern.fullmatch(text) is not None


def _is_nested(given: object) -> bool:
    """Whether it is or holds a table. Such values are left out of messages, which give its path: Python's notation
    confuses.
    """
    return isinstance(given, Mapping) or (isinstance(given, list) and any(map(_is_nested, given)))


def _keys_at(location: Iterable[Any], model: type[BaseModel]) -> list[str]:
    for part in location:
        if str(part) not in model.model_fields:
            continue  # a place in a list
        annotation = model.model_fields[str(part)].annotation
        candidates = [annotation, *get_args(annotation)]
        inner = next((c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)), None)
        # None: the user gave a table the name of a key that holds no table.
        model = model if inner is None else inner
    return [field.alias or name for name, field in model.model_fields.items()]
