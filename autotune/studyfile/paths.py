"""Paths of a study file, which are relative to it: they must lead to the same place from every folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any


def with_absolute_paths(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a study's table whose templates of input files have full paths; `folder` is that of the study file.

    What is not of the form that it must have stays as it is: the check of the study says so.
    """
    if table.get("objective") != "command":
        return dict(table)
    found = dict(table)
    if isinstance(found.get("options"), dict):
        found["options"] = _options(found["options"], folder)
    workloads = found.get("workloads")
    if isinstance(workloads, dict):
        found["workloads"] = {
            name: _options(options, folder) if isinstance(options, dict) else options
            for name, options in workloads.items()
        }
    return found


def _options(options: dict[str, Any], folder: Path) -> dict[str, Any]:
    files = options.get("files")
    if not isinstance(files, list):
        return options
    return {**options, "files": [_file(file, folder) for file in files]}


def _file(file: object, folder: Path) -> object:
    if not isinstance(file, dict) or not isinstance(file.get("template"), str):
        return file
    return {**file, "template": str((folder / file["template"]).absolute())}
