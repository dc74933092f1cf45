"""Load study files from the catalogue or the user, with changes from the command line."""

import importlib.resources
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.errors import StudyFileError
from autotune.studyfile.misplaced import with_right_table
from autotune.studyfile.model import StudyFile
from autotune.studyfile.paths import with_absolute_paths
from autotune.studyfile.weights import with_weights
from autotune.tomlfiles import reading as tomlfiles
from objectives.toml_text import parse_toml
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import OptionProblem, Problem


def catalogue() -> dict[str, Path]:
    """Return the studies that ship with autotune: name -> file."""
    return tomlfiles.toml_files(importlib.resources.files("studies"))


def find(name_or_path: str) -> Path:
    """Return the file of a catalogue name (`qe`) or of a path (`./mine.toml`).

    Raises:
        StudyFileError: No such name or file exists.
    """
    return find_file(name_or_path, catalogue(), "study")


def find_file(name_or_path: str, known: Mapping[str, Path], noun: str) -> Path:
    """Return the file of one of the `known` names, or of a path; messages call it a `noun`.

    Raises:
        StudyFileError: No such name or file exists.
    """
    if name_or_path in known:
        return known[name_or_path]
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.is_dir():
        msg = f"{name_or_path} is a folder: give the path of a {noun} file in it, or one of: {', '.join(known)}"
        raise StudyFileError(msg)
    if path.suffix == ".toml" or "/" in name_or_path:
        msg = f"no {noun} file at {name_or_path}"
        raise StudyFileError(msg)
    file = f"./{name_or_path}.toml"
    if Path(file).is_file():
        msg = f"no {noun} that ships is called {name_or_path!r}; the file here is {file}"
        raise StudyFileError(msg)
    msg = (
        f"no {noun} is called {name_or_path!r}{did_you_mean(name_or_path, known)}; "
        f"known: {', '.join(known)}; a file of your own is given by its path, {file}"
    )
    raise StudyFileError(msg)


def load(path: Path, overrides: Iterable[str] = ()) -> StudyFile:
    """Read a study file and apply `key=value` overrides with dotted keys.

    Raises:
        StudyFileError: The file is unreadable, is not TOML, or has errors: all of them at once, each with its path.
    """
    table = read(path)
    table.setdefault("name", path.stem)
    return apply_overrides(with_absolute_paths(table, path.parent), overrides, str(path))


def read(path: Path) -> dict[str, Any]:
    """Return the unchecked content of a study file.

    Raises:
        StudyFileError: The file is unreadable or not TOML.
    """
    return tomlfiles.read(path, "study file", StudyFileError)


def apply_overrides(table: Mapping[str, Any], overrides: Iterable[str], source: str) -> StudyFile:
    """Return a study's table with `key=value` overrides with dotted keys as a study file, which is checked.

    Raises:
        StudyFileError: All errors at once, each with its path; `source` is the name of the file.
    """
    given = list(overrides)
    changed = with_overrides(table, given)
    try:
        return parse(with_weights(changed), source=source)
    except StudyFileError as error:
        raise _name_overrides(error, given, _problems(table, source)) from None


def with_overrides(table: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Return a study's table with `key=value` overrides with dotted keys, unchecked.

    Raises:
        StudyFileError: An override has another form.
    """
    changed = dict(table)
    for override in overrides:
        _apply(changed, override)
    return changed


def parse(table: Mapping[str, Any], source: str) -> StudyFile:
    """Check a study's table.

    Raises:
        StudyFileError: All errors at once, each with its path; `source` is the name of the file.
    """
    try:
        return tomlfiles.validate(table, StudyFile, source, StudyFileError)
    except StudyFileError as error:
        problems = [with_right_table(problem) for problem in error.problems]
        raise tomlfiles.problems_error(source, problems, StudyFileError) from None


def _problems(table: Mapping[str, Any], source: str) -> Sequence[Problem]:
    try:
        parse(with_weights(table), source)
    except StudyFileError as error:
        return error.problems
    return ()


def _name_overrides(error: StudyFileError, overrides: Sequence[str], of_file: Sequence[Problem]) -> StudyFileError:
    """Return the error with the change in front of each problem that is due to the command line.

    A problem of a whole table (`pairs` against `max_pairs`) is due to a change in the table if the file alone, with
    the problems `of_file`, does not have it.
    """
    named = [
        problem
        if problem in of_file or (change := _change_of(problem, overrides)) is None
        else OptionProblem(problem.message, problem.path, option=f"--set {change}")
        for problem in error.problems
    ]
    typed = [isinstance(problem, OptionProblem) for problem in named]
    if all(typed) and typed:
        return StudyFileError("the command line has errors (--set KEY=VALUE, or the option for the key):", named)
    return StudyFileError(str(error).partition("\n")[0], named) if any(typed) else error


def _change_of(problem: Problem, overrides: Sequence[str]) -> str | None:
    """Return the last change of the key of a problem, of a key in its table, or of its table."""
    path = f"{problem.path}."
    for override in reversed(overrides):
        key = f"{override.partition('=')[0].strip()}."
        if path.startswith(key) or key.startswith(path):
            return override
    return None


def _apply(table: dict[str, Any], override: str) -> None:
    """Set the key of an override; a table that it changes is a copy first, since others may hold the original."""
    key, equals, text = override.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys):
        msg = "expected key=value with a dotted key, for example budget.workers=2"
        raise StudyFileError(OptionProblem(msg, option=f"--set {override!r}"))
    subtable = table
    for part in keys[:-1]:
        inner = subtable.get(part, {})
        if not isinstance(inner, dict):
            raise StudyFileError(OptionProblem(f"{part} is not a table", option=f"--set {override!r}"))
        subtable[part] = dict(inner)
        subtable = subtable[part]
    subtable[keys[-1]] = _toml_value(text.strip())


def _toml_value(text: str) -> Any:  # noqa: ANN401  TOML values are of any type; the model checks them
    try:
        return parse_toml(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
