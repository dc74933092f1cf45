"""Paths of a study file, which are relative to it: they must lead to the same place from every folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from objectives import registry


def with_absolute_paths(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a study's table in which the paths that its objective declares are full; `folder` is the study file's.

    What is not of the form that it must have stays as it is: the check of the study says so.
    """
    objective = table.get("objective")
    paths = [path.split(".") for path in registry.paths(objective)] if isinstance(objective, str) else []
    found = dict(table)
    for path in paths:
        found["options"] = _rooted(found.get("options"), path, folder)
        found["workloads"] = _rooted(found.get("workloads"), ["*", *path], folder)
    return {key: value for key, value in found.items() if key in table}


def _rooted(value: object, path: Sequence[str], folder: Path) -> object:
    """Return a value in which what lies at `path` is a full path; `*` stands for every item."""
    if not path:
        return str((folder / value).absolute()) if isinstance(value, str) else value
    name, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {key: _rooted(item, rest, folder) if name in {"*", key} else item for key, item in value.items()}
    if isinstance(value, list) and name == "*":
        return [_rooted(item, rest, folder) for item in value]
    return value
