"""Figures: numbers in a run's output or files, found by a regular expression or by their place in JSON."""

import errno
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from objectives.base import InvalidResult, Output
from objectives.patterns import find_last

# The same limit as for what a run prints.
_MOST_BYTES = 64 * 2**20
_SHOWN_CHARACTERS = 80
# The errors that mean that the file does not exist, so that trying again would not help.
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(frozen=True)
class Figure:
    """A number called `name`, read by a pattern or from JSON.

    Args:
        name: Its name in messages.
        pattern: A regular expression; the number is the one group of its last match.
        path: The place in JSON: keys, and indices of lists from 0, or from the end with -1.
        file: Where to look, in the run's folder. Without it a pattern is looked for in standard output, then in
            standard error; JSON is the whole standard output, or else its last line that is JSON.
    """

    name: str
    pattern: str | None = None
    path: tuple[str | int, ...] = ()
    file: str | None = None

    @property
    def place(self) -> str:
        """The place of the number, for messages."""
        return "the output" if self.file is None else self.file

    def value(self, output: Output) -> float:
        """Return the number.

        Raises:
            InvalidResult: It is missing, or not a finite number.
            OSError: The machine cannot read its file.
            SlowPatternError: The search took too long.
        """
        text = output.stdout if self.file is None else read_text(output.folder / self.file)
        if text is None:
            raise self._missing("the run left no such file")
        if self.pattern is None:
            return self._at_path(text)
        found = find_last(self.pattern, text)
        if found is None and self.file is None:
            found = find_last(self.pattern, output.stderr)
        return self._value_of_match(found)

    def _value_of_match(self, found: regex.Match[str] | None) -> float:
        value = to_number(found[1]) if found else None
        if value is None:
            if found is None:
                raise self._missing(f"nothing matches {self.pattern!r}")
            shown = found[0][:_SHOWN_CHARACTERS]
            raise self._missing(f"what matches {self.pattern!r} is no number: {shown!r}")
        return value

    def _at_path(self, text: str) -> float:
        found = _document(text)
        if found is None:
            raise self._missing("it is not JSON, and no line of it is")
        so_far = ""
        for step in self.path:
            inner = _step(found[0], step)
            if inner is None:
                what = _as_text(found[0])
                raise self._missing(f"no {step!r}{f' in {so_far!r}' if so_far else ''}, which {what}")
            found = inner
            so_far = f"{so_far}.{step}" if so_far else str(step)
        value = to_number(found[0])
        if value is None:
            raise self._missing(f"{so_far!r} is no number: {json.dumps(found[0])[:_SHOWN_CHARACTERS]}")
        return value

    def _missing(self, why: str) -> InvalidResult:
        return InvalidResult(f"no {self.name} in {self.place}: {why}", code="no-metric")


def read_text(path: Path) -> str | None:
    """Return the text of a file, or the end of a very large one; None if it does not exist.

    Raises:
        OSError: The machine cannot read it, which says nothing about the run that wrote it.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_BYTES))
            return file.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except ValueError:
        return None
    except OSError as error:
        if error.errno in _NO_FILE:
            return None
        raise


def to_number(found: object) -> float | None:
    """Return a finite number, also from its text; None for anything else."""
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        value = float(found)
    except (ValueError, OverflowError):
        return None
    return value if abs(value) < float("inf") else None


def _document(text: str) -> tuple[Any] | None:
    """Return the JSON of a whole text, or of its last line that is an object or a list; None if neither is JSON."""
    whole = _read(text)
    if whole is not None:
        return whole
    for line in reversed(text.splitlines()):
        found = _read(line) if line.lstrip()[:1] in {"{", "["} else None
        if found is not None:
            return found
    return None


def _read(text: str) -> tuple[Any] | None:
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def _step(found: object, step: str | int) -> tuple[Any] | None:
    if isinstance(found, dict):
        return (found[str(step)],) if str(step) in found else None
    if isinstance(found, list) and re.fullmatch(r"-?\d+", str(step)):
        place = int(step)
        return (found[place],) if -len(found) <= place < len(found) else None
    return None


def _as_text(found: object) -> str:
    if isinstance(found, dict):
        return f"has {', '.join(map(str, list(found)[:8])) or 'nothing'}"
    if isinstance(found, list):
        return f"is a list of {len(found)}"
    return f"is {json.dumps(found)[:_SHOWN_CHARACTERS]}"
