"""Attribute problems of a study to the command-line options that caused them, rather than to lines of the file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from spaces.parameters.problem import OptionProblem, Problem

TypedKey = tuple[str, str]
"""A key of the study file that an option changed, and the option as typed."""


def changed_keys(changes: Iterable[str]) -> list[TypedKey]:
    """Return the keys of changes in the form `key=value`, the last one first, since the last change counts."""
    return [(change.partition("=")[0].strip(), f"--set {change}") for change in changes][::-1]


def input_keys(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[TypedKey]:
    """Return the keys of the options that an input of the user's changed, from the options before and after."""
    return [(f"options.{key}", f"--input {path}") for key in _different(before, after)]


def blame_option(problem: Problem, typed: Sequence[TypedKey], lines: Mapping[str, int]) -> Problem:
    """Return a problem as one of the option that caused it, or unchanged if no option did.

    An option causes a problem of its own key, and also of keys that are missing in a table that it created.

    Args:
        problem: The problem.
        typed: The keys that options changed.
        lines: The line of each key in the file, by path.
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
