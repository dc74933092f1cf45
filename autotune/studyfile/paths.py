"""Make the paths in a study file absolute, so that they lead to the same place from every folder."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from objectives import registry


def with_absolute_paths(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a study's table with absolute paths where its objective declares paths, relative to the study file's
    `folder`.

    Malformed values stay unchanged, because the check of the study reports them.
    """
    objective = table.get("objective")
    paths = [path.split(".") for path in registry.paths(objective)] if isinstance(objective, str) else []
    rooted = dict(table)
    for path in paths:
        rooted["options"] = _make_absolute(rooted.get("options"), path, folder)
        rooted["inputs"] = _make_absolute(rooted.get("inputs"), ["*", "options", *path], folder)
    for path in (["container"], ["programs", "*"], ["libraries", "*"]):
        rooted["software"] = _make_absolute(rooted.get("software"), ["*", *path], folder)
    rooted["decisions"] = _make_absolute(rooted.get("decisions"), ["weights"], folder)
    return {key: value for key, value in rooted.items() if key in table}


def _make_absolute(value: object, path: Sequence[str], folder: Path) -> object:
    """Return a value with an absolute path at `path`; `*` stands for every item."""
    if not path:
        # The address of an image in a registry is not a path.
        if not isinstance(value, str) or "://" in value:
            return value
        return str((folder / os.path.expanduser(value)).absolute())  # noqa: PTH111  an unknown user must not be an error
    name, rest = path[0], path[1:]
    if isinstance(value, dict):
        return {key: _make_absolute(item, rest, folder) if name in {"*", key} else item for key, item in value.items()}
    if isinstance(value, list) and name == "*":
        return [_make_absolute(item, rest, folder) for item in value]
    return value
