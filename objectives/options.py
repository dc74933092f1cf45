"""Options of a study file, checked by a model: what is the same for every objective that ships with a space."""

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from objectives.base import PlanError

_Model = TypeVar("_Model", bound=BaseModel)


def read_options(model: type[_Model], options: Mapping[str, Any], program: str) -> _Model:
    """Check options from a study file; `program` is what errors call the program that has them.

    Raises:
        PlanError: they have errors: all of them, each with its path.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        lines = [_sentence(item, model, program) for item in error.errors(include_url=False)]
        raise PlanError("\n".join(lines)) from None


def _sentence(item: Mapping[str, Any], model: type[BaseModel], program: str) -> str:
    place = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        close = difflib.get_close_matches(place, model.model_fields, n=1)
        suggestion = f" (did you mean {close[0]!r}?)" if close else ""
        known = ", ".join(model.model_fields)
        return f"{program} has no option {place!r}{suggestion}; known: {known} @ options.{place}"
    return f"{item['msg']}, got {item['input']!r} @ options.{place}"
