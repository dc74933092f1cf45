"""Scrub: what leaves the service names no path of its host."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

_Value = TypeVar("_Value")

# A slash that begins a word, and a folder with its entry: `/usr/bin/pw.x`; but neither `/tmp`, which tells nothing,
# nor `s/m` or `https://host/page`, nor the interpreter of a script.
# In the address of a SQLite file, sqlite:////home/..., the fourth slash begins it, and in `-I/usr/include` an option.
_BEGINS = r"(?:(?<=:///)|(?<=\s-[A-Za-z])|(?<![\w./~-])(?<!#!))"
_PATH = re.compile(_BEGINS + r"(?:~|file://)?(?!//)(?:/+[^\s/:;,'\"<>|()\[\]{}=]+){2,}/?")
_SHOWN = "…/"


def without_paths(text: str, before: str = _SHOWN) -> str:
    """Return a text in which `before` replaces all of a path but its last part: `…/pw.x`."""
    return _PATH.sub(lambda match: before + match[0].rstrip("/").rpartition("/")[2], text)


def scrubbed(value: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """Return a JSON-able value without paths, in its keys, too; numbers that JSON cannot hold become None."""
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, Mapping):
        return {without_paths(str(key)): scrubbed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(item) for item in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):  # noqa: PLR0124  not a number
        return None
    return value


def without_paths_inside(value: _Value) -> _Value:
    """Return a frozen value, and all values inside it, without paths in their texts."""
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = without_paths(value)
    elif isinstance(value, tuple) and type(value) is tuple:
        cleaned = tuple(without_paths_inside(item) for item in value)
    elif isinstance(value, Mapping):
        cleaned = {without_paths_inside(key): without_paths_inside(item) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        cleaned = replace(
            value, **{field.name: without_paths_inside(getattr(value, field.name)) for field in fields(value)}
        )
    changed: _Value = cleaned
    return changed
