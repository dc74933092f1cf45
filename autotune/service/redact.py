"""Scrub: what leaves the service names no path of its host."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

_Value = TypeVar("_Value")

# A slash that begins a word, and a folder and what is in it: `/usr/bin/pw.x`; but neither `/tmp`, which tells nothing,
# nor `s/m` or `https://host/page`, nor the interpreter of a script, without which it is none.
# In the address of a SQLite file, sqlite:////home/..., the fourth slash begins it, and in `-I/usr/include` an option.
_BEGINS = r"(?:(?<=:///)|(?<=\s-[A-Za-z])|(?<![\w./~-])(?<!#!))"
_PATH = re.compile(_BEGINS + r"(?:~|file://)?(?!//)(?:/+[^\s/:;,'\"<>|()\[\]{}=]+){2,}/?")
_SHOWN = "…/"


def without_paths(text: str, before: str = _SHOWN) -> str:
    """Return a text in which paths have only their last part, after another one: `…/pw.x`."""
    return _PATH.sub(lambda found: before + found[0].rstrip("/").rpartition("/")[2], text)


def scrubbed(value: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """Return a JSON-able value without paths, in its keys, too; numbers that JSON cannot hold become None."""
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, Mapping):
        return {without_paths(str(key)): scrubbed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(one) for one in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):  # noqa: PLR0124  not a number
        return None
    return value


def without_paths_inside(value: _Value) -> _Value:
    """Return a frozen value, and all values inside it, without paths in their texts."""
    found: Any = value
    if isinstance(value, str):
        found = without_paths(value)
    elif isinstance(value, tuple) and type(value) is tuple:
        found = tuple(without_paths_inside(one) for one in value)
    elif isinstance(value, Mapping):
        found = {without_paths_inside(key): without_paths_inside(one) for key, one in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(value, **{one.name: without_paths_inside(getattr(value, one.name)) for one in fields(value)})
    changed: _Value = found
    return changed
