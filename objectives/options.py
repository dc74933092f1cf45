"""Check the options of a study file against a pydantic model."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from objectives.base import PlanError
from objectives.validation import errors_in, problem_of
from spaces.parameters.errors import near_or_known
from spaces.parameters.problem import Problem, UnknownKeyProblem

_Model = TypeVar("_Model", bound=BaseModel)


def read_options(model: type[_Model], options: Mapping[str, Any], program: str) -> _Model:
    """Check options from a study file; error messages call the program `program`.

    Raises:
        PlanError: The options have errors; all are reported, each with its path.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        raise PlanError(_problem(item, model, program) for item in errors_in(error, options)) from None


def _problem(item: Mapping[str, Any], model: type[BaseModel], program: str) -> Problem:
    if item["type"] != "extra_forbidden" or len(item["loc"]) > 1:
        return problem_of(item, model, "options")
    name, known = str(item["loc"][0]), model.model_fields
    return UnknownKeyProblem(f"{program} has no option {name!r}: {near_or_known(name, known)}", f"options.{name}")
