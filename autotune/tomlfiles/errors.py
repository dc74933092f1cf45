"""What pydantic finds wrong with a table, as sentences with paths."""

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from spaces.parameters.errors import did_you_mean


def explain(item: Mapping[str, Any], model: type[BaseModel]) -> str:
    """Return one error of a table that `model` describes, as pydantic found it, with its path."""
    place = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        known = _fields_at(item["loc"][:-1], model)
        name = str(item["loc"][-1])
        return f"unknown key{did_you_mean(name, known)}; known: {', '.join(known)} @ {place}"
    if item["type"] == "missing":
        return f"required field missing @ {place}"
    return f"{item['msg'].removeprefix('Value error, ')}, got {item['input']!r} @ {place}"


def _fields_at(location: Iterable[Any], model: type[BaseModel]) -> list[str]:
    for part in location:
        if str(part) not in model.model_fields:
            continue  # a place in a list
        annotation = model.model_fields[str(part)].annotation
        candidates = [annotation, *get_args(annotation)]
        model = next(c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel))
    return list(model.model_fields)
