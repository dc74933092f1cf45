"""Scrub: what leaves the service names no path of its host."""

import functools
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

_Value = TypeVar("_Value")

# A slash that begins a word, and a folder with its entry: `/usr/bin/pw.x`; but neither `/tmp`, which tells nothing,
# nor `s/m` or `https://host/page`, nor the interpreter of a script.
# In the address of a SQLite file, sqlite:////home/..., the fourth slash begins it, and in `-I/usr/include` an option.
_BEGINS = r"(?:(?<=:///)|(?<=\s-[A-Za-z])|(?<![\w./~-])(?<!#!))"
_PATH = re.compile(_BEGINS + r"(?:~|file://)?(?!//)(?:/+[^\s/:;,'\"<>|()\[\]{}=]+){2,}/?")
_SHOWN = "…/"
# What ends a path for `_PATH`, and may be in one all the same.
_SPECIAL = re.compile(r"[\s:;,'\"<>|()\[\]{}=]")
# A path in quotes, in which blanks are part of it; but not a command with its arguments.
_QUOTED = re.compile(r"""(['"])(?:~|file://)?/(?!/)(?:(?!\s[-/~])[^'"\n])*/((?:(?!\s[-/~])[^'"/\n])+)/?\1""")


class KnownFolders:
    """Folders whose names are known, so that they are found in a text whatever characters they have."""

    def __init__(self) -> None:
        """Know this user's home, and the present folder."""
        self._plain: dict[str, str] = {}
        self.add(Path.home())
        self.add(Path.cwd())

    def add(self, folder: Path) -> None:
        """Know one more folder; a path that `_PATH` finds by itself need not be known."""
        for path in {str(folder.absolute()), str(folder.resolve())}:
            if _SPECIAL.search(path):
                self._plain[path] = f"/-/{_SPECIAL.sub('_', path.rpartition('/')[2])}"

    def plain(self, text: str) -> str:
        """Return a text in which such folders have names without special characters."""
        for folder in sorted(self._plain, key=len, reverse=True):
            text = text.replace(folder, self._plain[folder])
        return text


@functools.cache
def known_folders() -> KnownFolders:
    """Return the folders that this process knows."""
    return KnownFolders()


def each_path(text: str, put: Callable[[str], str]) -> str:
    """Return a text with what `put` makes of each path in it."""
    text = _QUOTED.sub(lambda match: f"{match[1]}{put(match[0][1:-1])}{match[1]}", known_folders().plain(text))
    return _PATH.sub(lambda match: put(match[0]), text)


def without_paths(text: str) -> str:
    """Return a text in which `…/` replaces all of a path but its last part: `…/pw.x`."""
    return each_path(text, lambda path: _SHOWN + path.rstrip("/").rpartition("/")[2])


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


def without_paths_inside(value: _Value, but: Collection[str] = ()) -> _Value:
    """Return a frozen value, and all values inside it, without paths in their texts, `but` those stay as they are."""
    cleaned: Any = value
    if isinstance(value, str):
        cleaned = value if value in but else without_paths(value)
    elif isinstance(value, tuple) and type(value) is tuple:
        cleaned = tuple(without_paths_inside(item, but) for item in value)
    elif isinstance(value, Mapping):
        cleaned = {without_paths_inside(key, but): without_paths_inside(item, but) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        cleaned = replace(
            value, **{field.name: without_paths_inside(getattr(value, field.name), but) for field in fields(value)}
        )
    changed: _Value = cleaned
    return changed
