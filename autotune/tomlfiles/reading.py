"""Read a user's TOML files into models, and report all problems of a file at once."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from autotune.errors import AutotuneError
from objectives.toml_text import parse_toml, read_toml_text
from objectives.validation import problems_in
from spaces.parameters.problem import Problem

_Model = TypeVar("_Model", bound=BaseModel)


def toml_files(folder: Traversable) -> dict[str, Path]:
    """Return the TOML files of a folder, in order: name -> file. It is empty if the folder cannot be read."""
    try:
        files = sorted(Path(str(entry)) for entry in folder.iterdir() if entry.name.endswith(".toml"))
    except OSError:
        return {}
    return {file.stem: file for file in files}


def read(path: Path, noun: str, error: type[AutotuneError]) -> dict[str, Any]:
    """Return the table in a TOML file, without validation.

    Args:
        path: The file.
        noun: The kind of file, for messages: `study file`.
        error: The exception to raise.

    Raises:
        error: the file is not readable, or not TOML.
    """
    try:
        return parse_toml(read_toml_text(path))
    except OSError as caught:
        msg = f"cannot read the {noun} {path}: {caught.strerror}"
        raise error(msg) from caught
    except ValueError as caught:  # not text, not TOML, or not a possible file name
        msg = f"{path} is not a TOML file: {caught}"
        raise error(msg) from caught


def validate(
    table: Mapping[str, Any],
    model: type[_Model],
    source: str,
    error: type[AutotuneError],
    others: Iterable[Problem] = (),
) -> _Model:
    """Return a table as a `model`.

    Args:
        table: The table.
        model: The model to validate it with.
        source: The name of the file, for messages.
        error: The exception to raise.
        others: Problems from further checks, to report together with those of the model.

    Raises:
        error: the table has problems: all are listed, each with its path.
    """
    problems: list[Problem] = []
    validated = None
    try:
        validated = model.model_validate(dict(table))
    except ValidationError as caught:
        problems += problems_in(caught, model, table)
    problems += others
    if problems or validated is None:
        raise problems_error(source, problems, error)
    return validated


def problems_error(
    source: str, problems: Sequence[Problem], error: type[AutotuneError], shown: int | None = None
) -> AutotuneError:
    """Return the error that lists the problems of the file `source`, at most `shown` of them."""
    plural = "error" if len(problems) == 1 else "errors"
    return error(f"{source}: {len(problems)} {plural}", problems, shown)
