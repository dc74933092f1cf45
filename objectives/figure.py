"""Figures: numbers in a run's output or files, found by a regular expression or by their place in JSON."""

import errno
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import regex

from objectives.base import InvalidResult, Output
from objectives.patterns import find_last, match_at
from objectives.quantity import UnitError, read_quantity, to_number, unit_after, whole_number
from objectives.toml_text import quoted
from objectives.units import other_scales

# The same limit as for what a run prints.
_MOST_BYTES = 64 * 2**20
_SHOWN_CHARACTERS = 80
_MOST_PATTERN = 200
# The text after a number in which its unit is looked for, and around a match in which another unit is tried.
_AFTER_CHARACTERS, _AROUND_CHARACTERS = 80, 2000
NOTHING_PRINTED = (
    "the run printed nothing: leave out what silences it (an option such as --quiet), or name a file that it writes"
)
"""Begins the remedy where a run has printed nothing to read."""
UNIT_GROUP = "unit"
"""The group of a pattern that finds the unit of the number."""
# The errors that mean that the file does not exist, so that trying again would not help.
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG})


@dataclass(frozen=True)
class Figure:
    """A number called `name`, read by a pattern or from JSON.

    Args:
        name: Its name in messages.
        pattern: A regular expression; the number is the group of its last match, a group called `unit` its unit.
        path: The place in JSON: keys, and indices of lists from 0, or from the end with -1.
        file: Where to look, in the run's folder. Without it a pattern is looked for in standard output, then in
            standard error; JSON is the whole standard output, or else its last line that is JSON.
        unit: The unit of the value. A number that is printed in another unit of the same quantity is converted.
    """

    name: str
    pattern: str | None = None
    path: tuple[str | int, ...] = ()
    file: str | None = None
    unit: str = ""

    @property
    def place(self) -> str:
        """The place of the number, for messages."""
        return "the output" if self.file is None else self.file

    def value(self, output: Output) -> float:
        """Return the number.

        Raises:
            InvalidResult: It is missing, not a finite number, or in a unit that cannot be converted.
            OSError: The machine cannot read its file.
            SlowPatternError: The search took too long.
        """
        text = output.stdout if self.file is None else read_text(output.folder / self.file)
        if text is None:
            raise self._missing("the run left no such file")
        if not text.strip() and (self.file is not None or not output.stderr.strip()):
            raise self._missing("the file is empty" if self.file is not None else f"{NOTHING_PRINTED} by file = ...")
        if self.pattern is None:
            return self._at_path(text)
        found = find_last(self.pattern, text)
        if found is None and self.file is None:
            found = find_last(self.pattern, output.stderr)
        return self._value_of_match(found)

    def _value_of_match(self, found: regex.Match[str] | None) -> float:
        if found is None:
            raise self._missing(f"nothing matches {self._shown_pattern}")
        group = number_group(found.re.groups, found.re.groupindex)
        text, after = found[group] or "", _rest_of_line(found, group)
        if found.end() == found.end(group):
            text, after = whole_number(text, after)
        printed = found[UNIT_GROUP] if UNIT_GROUP in found.re.groupindex else None
        value = self._in_unit(text, after, printed)
        if value is None:
            shown = found[0][:_SHOWN_CHARACTERS]
            raise self._missing(f"what matches {self._shown_pattern} is no number: {quoted(shown)}")
        if not self.unit and (other := _varying_unit(found, group, after)):
            wanted = f"declare the one to compare in: unit = {other!r}"
            raise self._missing(f"{text!r} is in {other}, and other runs may print another unit: {wanted}")
        return value

    @property
    def _shown_pattern(self) -> str:
        """The pattern in quotes; of a long one, which nobody would read in a message, the beginning."""
        pattern = self.pattern or ""
        return quoted(pattern if len(pattern) <= _MOST_PATTERN else f"{pattern[:_SHOWN_CHARACTERS]}...")

    def _in_unit(self, text: str, after: str = "", printed: str | None = None) -> float | None:
        try:
            value = read_quantity(text, self.unit, after=after, printed=printed)
        except UnitError as error:
            raise self._missing(str(error)) from error
        return None if value is None else to_number(value)

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
        value = self._in_unit(found[0]) if isinstance(found[0], str) else to_number(found[0])
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


def number_group(groups: int, named: Mapping[str, int]) -> int:
    """Return which group of a pattern holds the number: the first that is not the unit."""
    return next(group for group in range(1, groups + 1) if group != named.get(UNIT_GROUP))


def _rest_of_line(found: regex.Match[str], group: int) -> str:
    end = found.end(group)
    return re.split(r"[\r\n]", found.string[end : end + _AFTER_CHARACTERS], maxsplit=1)[0]


def _varying_unit(found: regex.Match[str], group: int, after: str) -> str | None:
    """Return the unit after a number if the pattern would match another one there just as well; else None."""
    printed = unit_after(after)
    if printed is None or not (others := other_scales(printed)):
        return None
    text, number = found.string, found[group]
    place = text.index(printed, found.end(group))
    begin = text.rfind("\n", 0, max(0, found.start() - _AROUND_CHARACTERS)) + 1
    before, behind = text[begin:place], text[place + len(printed) :][:_AROUND_CHARACTERS]
    for other in others:
        matched = match_at(found.re, f"{before}{other}{behind}", found.start() - begin)
        if matched is not None and matched[group] == number and other != printed:
            return printed
    return None


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
