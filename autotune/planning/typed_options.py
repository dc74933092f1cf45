"""Problems of what was typed beside the name of a study: an option is to blame, and not the file that it changes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spaces.parameters.problem import OptionProblem, Problem

TypedKey = tuple[str, str]
"""A key of the study file that an option changed, and the option as it was typed."""


def changed_keys(changes: Iterable[str]) -> list[TypedKey]:
    """Return the keys of changes as `key=value`, the last first: it is the one that counts."""
    return [(change.partition("=")[0].strip(), f"--set {change}") for change in changes][::-1]


def input_keys(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[TypedKey]:
    """Return which of the options of a study are others with an input of the user's."""
    return [(f"options.{key}", f"--input {path}") for key in _different(before, after)]


def blame_option(problem: Problem, typed: Sequence[TypedKey], lines: Mapping[str, int]) -> Problem:
    """Return a problem with the option that it is about, if it is about one; `lines` are those of the file, by path.

    A key that was typed may be wrong in its table, or have made a table in which others are missing.
    """
    path = problem.path
    if isinstance(problem, OptionProblem) or path is None:
        return problem
    for key, option in typed:
        table = key.rpartition(".")[0]
        made = bool(table) and table not in lines
        if _within(path, key) or _within(key, path) or (made and _within(path, table)):
            return OptionProblem(problem.message, path, option=option)
    return problem


def _within(path: str, key: str) -> bool:
    return f"{path}.".startswith(f"{key}.")


def _different(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key, value in after.items():
        old = before.get(key)
        if isinstance(value, list) and isinstance(old, list) and len(value) == len(old):
            yield from (f"{key}.{index}" for index, each in enumerate(value) if each != old[index])
        elif value != old:
            yield key
