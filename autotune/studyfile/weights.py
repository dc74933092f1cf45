"""The weights of a decision table's cells: how often a program uses each, given as a file or as rows."""

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from autotune.errors import StudyFileError
from objectives.toml_text import read_toml_text
from spaces.parameters.problem import Problem

COUNT = "count"
_PATH = "decisions.weights"


def with_weights(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's table with the rows of the file that `[decisions] weights` names.

    The rows are stored with the study, so that moving or changing the file does not change the study.

    Raises:
        StudyFileError: The file is unreadable, or is not a CSV file with a `count`.
    """
    section = table.get("decisions")
    if not isinstance(section, dict) or not isinstance(section.get("weights"), str):
        return dict(table)
    return {**table, "decisions": {**section, "weights": _read(Path(section["weights"]))}}


def row_problem(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str | None:
    """Return the error in rows of cells with these names; None if they are valid."""
    wanted = {*names, COUNT}
    for number, row in enumerate(rows, start=1):
        if row.keys() != wanted:
            return f"row {number} must have exactly the keys {', '.join([*names, COUNT])}"
        if isinstance(row[COUNT], str | bool) or not 0 <= row[COUNT] < inf:
            return f"row {number}: {COUNT} must be a number from 0 up"
    if not any(row[COUNT] for row in rows):
        return f"each {COUNT} is 0; give at least one cell a larger {COUNT}"
    return None


def _read(path: Path) -> list[dict[str, Any]]:
    from objectives.replay.delimited import find_line_error, parse_column, read_lines  # noqa: PLC0415  few studies name a file

    try:
        header, lines = read_lines(read_toml_text(path))
    except OSError as error:
        raise _wrong(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise _wrong(f"{path} is not a CSV file: it is larger than 1 MiB, or is not text") from error
    if (wrong := find_line_error(lines)) is not None:
        raise _wrong(f"{path}: {wrong}")
    if COUNT not in header:
        raise _wrong(f"{path} needs a column {COUNT!r}, and one for each context and for the points, in its first line")
    columns = {name: parse_column([line[name] for line in lines]) for name in header}
    counts: dict[tuple[Any, ...], Any] = {}
    names = [name for name in header if name != COUNT]
    keys = zip(*(columns[name] for name in names), strict=True) if names else iter([()] * len(lines))
    for number, (key, count) in enumerate(zip(keys, columns[COUNT], strict=True), start=2):
        if None in key or isinstance(count, str | bool) or count is None:
            raise _wrong(f"{path}, line {number}: {COUNT} must be a number, and no value may be empty")
        counts[key] = counts.get(key, 0) + count
    return [{**dict(zip(names, key, strict=True)), COUNT: count} for key, count in counts.items()]


def _wrong(message: str) -> StudyFileError:
    return StudyFileError(Problem(message, _PATH))
