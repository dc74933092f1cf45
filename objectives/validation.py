"""Pydantic's errors in a table that a user wrote, as problems with paths."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem, UnknownKeyProblem


def problems_in(error: ValidationError, model: type[BaseModel], under: str = "") -> list[Problem]:
    """Return what is wrong with a table that `model` describes; `under` is the path of the table."""
    return [problem_of(item, model, under) for item in error.errors(include_url=False)]


def problem_of(item: Mapping[str, Any], model: type[BaseModel], under: str = "") -> Problem:
    """Convert one error of pydantic; `under` is the path of the table that `model` describes."""
    path = ".".join([*([under] if under else []), *map(str, item["loc"])])
    if item["type"] == "extra_forbidden":
        known = _keys_at(item["loc"][:-1], model)
        close = did_you_mean(str(item["loc"][-1]), known)
        return UnknownKeyProblem(f"unknown key{close}; known: {', '.join(known)}", path)
    if item["type"] == "missing":
        return Problem("required field missing", path)
    got = "" if _is_nested(item["input"]) else f", got {item['input']!r}"
    return Problem(f"{item['msg'].removeprefix('Value error, ')}{got}", path)


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
