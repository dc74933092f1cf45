"""Reading a user's TOML files into models: all problems of a file are reported at once."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autotune.errors import AutotuneError
from objectives.toml_text import parse_toml, read_toml_text
from objectives.validation import problems_in
from spaces.parameters.problem import Problem

_Model = TypeVar("_Model", bound=BaseModel)


def read(path: Path, noun: str, error: type[AutotuneError]) -> dict[str, Any]:
    """Return what a TOML file says, unchecked; `noun` is what messages call it: `study file`.

    Raises:
        error: it is not readable, or not TOML.
    """
    try:
        return parse_toml(read_toml_text(path))
    except OSError as caught:
        msg = f"cannot read the {noun} {path}: {caught.strerror}"
        raise error(msg) from caught
    except ValueError as caught:  # no text, no TOML, or no name of a file
        msg = f"{path} is not a TOML file: {caught}"
        raise error(msg) from caught


def validate(
    table: Mapping[str, Any],
    model: type[_Model],
    source: str,
    error: type[AutotuneError],
    others: Iterable[Problem] = (),
) -> _Model:
    """Return a table as a `model`; `others` are problems from further checks.

    Raises:
        error: there are problems, all of them at once, each with its path; `source` names the file.
    """
    problems: list[Problem] = []
    validated = None
    try:
        validated = model.model_validate(dict(table))
    except ValidationError as caught:
        problems += problems_in(caught, model)
    problems += others
    if problems or validated is None:
        raise problems_error(source, problems, error)
    return validated


def problems_error(
    source: str, problems: Sequence[Problem], error: type[AutotuneError], shown: int | None = None
) -> AutotuneError:
    """Return the error that lists the problems of a file, at most `shown` of them; `source` names the file."""
    plural = "error" if len(problems) == 1 else "errors"
    return error(f"{source}: {len(problems)} {plural}", problems, shown)
