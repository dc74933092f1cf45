"""Find the lines of keys in a TOML file, which the standard library does not report."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from spaces.parameters.problem import Problem

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"[ \t]*")
_NOTHING = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_TEXTS = (
    re.compile(r'"""(?:\\.|[^\\])*?"""(?:"{0,2})', re.DOTALL),
    re.compile(r"'''.*?'''(?:'{0,2})", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\\n])*"'),
    re.compile(r"'[^'\n]*'"),
)
_BARE = re.compile(r"[^,\]}\n#]*")


def lines_of(text: str) -> dict[str, int]:
    """Return the line, from 1, of every key and list entry of a TOML file, by its dotted path: `options.argv.0`.

    If the file is not valid TOML, the result has the lines before the mistake.
    """
    reader = _Reader(text)
    with suppress(IndexError, ValueError, StopIteration, RecursionError):
        reader.document()
    return reader.lines


def line_of(places: Mapping[str, int], path: str) -> int | None:
    """Return the line of a path, or of the nearest table around it; None if the file has neither."""
    parts = re.sub(r"\[(-?\d+)\]", r".\1", path).split(".")
    for count in range(len(parts), 0, -1):
        line = places.get(".".join(parts[:count]))
        if line is not None:
            return line
    return None


def locate(problem: Problem, places: Mapping[str, int]) -> Problem:
    """Return a problem with its line in the file, and with its path in the form of `lines_of`."""
    if problem.path is None:
        return problem
    path = re.sub(r"\[(-?\d+)\]", r".\1", problem.path)
    return replace(problem, path=path, line=line_of(places, path))


class _Reader:
    """A single pass over a text that collects the lines of keys."""

    def __init__(self, text: str) -> None:
        self.lines: dict[str, int] = {}
        self._text = text
        self._at = 0
        self._line = 1
        self._counts: dict[str, int] = {}

    def document(self) -> None:
        table = ""
        while True:
            self._skip(_NOTHING)
            if self._at >= len(self._text):
                return
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> str:
        listed = self._text.startswith("[[", self._at)
        self._at += 2 if listed else 1
        path = ""
        # The name of a list of tables refers to its last entry.
        keys = self._key()
        for number, key in enumerate(keys):
            path = _join(path, key)
            self._remember(path)
            if listed and number == len(keys) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:
                path = f"{path}.{self._counts[path]}"
        self._remember(path)
        self._skip(_BLANK)
        self._at += 2 if listed else 1
        return path

    def _pair(self, table: str) -> None:
        for key in self._key():
            table = _join(table, key)
            self._remember(table)
        self._skip(_BLANK)
        if self._text[self._at] != "=":
            raise ValueError
        self._at += 1
        self._skip(_BLANK)
        self._value(table)

    def _key(self) -> list[str]:
        keys = []
        while True:
            self._skip(_BLANK)
            start = self._text[self._at]
            if start in {'"', "'"}:
                keys.append(self._skip(_TEXTS[2 if start == '"' else 3])[1:-1])
            else:
                keys.append(self._skip(_NAME))
            if not keys[-1] and start not in {'"', "'"}:
                raise ValueError
            self._skip(_BLANK)
            if self._text[self._at] != ".":
                return keys
            self._at += 1

    def _value(self, path: str) -> None:
        start = self._text[self._at]
        if start == "[":
            self._entries(path, "]")
        elif start == "{":
            self._entries(path, "}")
        elif start in {'"', "'"}:
            pattern = next(candidate for candidate in _TEXTS if candidate.match(self._text, self._at))
            self._skip(pattern)
        else:
            self._skip(_BARE)

    def _entries(self, path: str, end: str) -> None:
        self._at += 1
        number = 0
        while True:
            self._skip(_NOTHING)
            if self._text[self._at] == end:
                self._at += 1
                return
            if end == "}":
                self._pair(path)
            else:
                self._remember(f"{path}.{number}")
                self._value(f"{path}.{number}")
                number += 1
            self._skip(_NOTHING)
            if self._text[self._at] == ",":
                self._at += 1

    def _remember(self, path: str) -> None:
        self.lines.setdefault(path, self._line)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            raise ValueError
        self._at = match.end()
        self._line += match[0].count("\n")
        return match[0]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
