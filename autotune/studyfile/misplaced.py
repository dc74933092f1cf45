"""Name the table of a study file in which a key belongs that stands in another one."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import get_args

from pydantic import BaseModel

from autotune.studyfile.model import StudyFile
from objectives.command_options import CommandOptions
from objectives.server_options import ServerOptions
from spaces.parameters.errors import in_table
from spaces.parameters.problem import Problem, UnknownKeyProblem

# These mean something in many tables, so that they do not show which one was meant.
_COMMON = frozenset({"name", "description", "kind", "options", "environment", "command", "min", "max", "weight"})


def with_right_table(problem: Problem) -> Problem:
    """Return a problem of an unknown key with the table where the key belongs, if there is one; others unchanged."""
    if not isinstance(problem, UnknownKeyProblem) or problem.path is None:
        return problem
    table, _, key = problem.path.rpartition(".")
    unknown = f"unknown key {key!r}{in_table(table)}"
    places = _places().get(key, []) if key not in _COMMON else []
    # [options] are those of the study's objective, which need not have a key that a command has there.
    if places and _place(table) not in places:
        return replace(problem, message=f"{unknown}: it belongs {' or '.join(places)}")
    if table == "space":
        return replace(problem, message=f"{unknown}: a parameter is a table, [space.parameters.{key}]")
    return problem


@cache
def _places() -> dict[str, list[str]]:
    """Return where each key of a study file belongs; options are those of a command."""
    places: dict[str, list[str]] = {}
    for table, model in _tables():
        for name, field in model.model_fields.items():
            places.setdefault(field.alias or name, []).append(_place(table))
    return places


def _place(table: str) -> str:
    return f"in [{table}]" if table else "at the top of the file, before the first [table]"


def _tables() -> Iterator[tuple[str, type[BaseModel]]]:
    yield "", StudyFile
    yield "options", CommandOptions
    yield "options.server", ServerOptions
    for name, field in StudyFile.model_fields.items():
        for one in (field.annotation, *get_args(field.annotation)):
            if isinstance(one, type) and issubclass(one, BaseModel):
                yield f"{name}.NAME" if name in {"software", "limits"} else name, one
