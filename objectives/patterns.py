"""Searches for users' regular expressions in a run's output, each in bounded time.

A pattern like `(a|aa)+$` can take longer than the age of the universe on a line of a hundred letters, and a search of
`re` cannot be interrupted. `regex` searches with a time limit and lets other threads run meanwhile. It reads patterns
as `re` does, except `{` and classes such as `[[:alpha:]]`.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

import regex

from objectives.toml_text import quoted

# Seconds of CPU time; a typical pattern takes one or two for 64 MiB.
LIMIT_S = 10.0

NO_PATTERN = (re.error, OverflowError, RecursionError)
"""The errors of Python for a text that is not a regular expression, or is too large for one."""

# `re` reads a brace that is no repeat as a character; `regex` reads `x{e}` as "x with any number of errors".
_BRACE = re.compile(r"(\\N\{|\\.)|\{(?!\d+\}|\d*,\d*\})", re.DOTALL)

_Read = TypeVar("_Read")


class SlowPatternError(Exception):
    """A search took too long. The study file is to blame, not the configuration."""

    code = "slow-pattern"

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the search for the pattern {quoted(pattern)} took more than {LIMIT_S:g} s; alternatives with the same "
            "start in a repeat, as in (a|aa)+, or several .* can take forever: write one repeat, and characters that "
            "end it, as in [^,]*"
        )


def find_first(pattern: str, text: str) -> regex.Match[str] | None:
    """Return the first match; `^` and `$` match at line ends.

    Raises:
        SlowPatternError: The search took too long.
    """
    try:
        return _compile(pattern, regex.MULTILINE).search(text, timeout=LIMIT_S)
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


def find_last(pattern: str, text: str) -> regex.Match[str] | None:
    """Return the last match; `^` and `$` match at line ends.

    Raises:
        SlowPatternError: The search took too long.
    """
    # Keep one match only: there may be millions.
    try:
        kept = deque(_compile(pattern, regex.MULTILINE).finditer(text, timeout=LIMIT_S), maxlen=1)
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error
    return kept[0] if kept else None


def match_at(pattern: regex.Pattern[str], text: str, start: int) -> regex.Match[str] | None:
    """Return the match of a compiled pattern that begins at `start`.

    Raises:
        SlowPatternError: The search took too long.
    """
    try:
        return pattern.match(text, start, timeout=LIMIT_S)
    except TimeoutError as error:
        raise SlowPatternError(pattern.pattern) from error


def find_distinct(pattern: str, text: str) -> set[str]:
    """Return the distinct texts of the first group over all matches; `^` and `$` match at line ends.

    Raises:
        SlowPatternError: The search took too long.
    """
    try:
        return {match[1] or "" for match in _compile(pattern, regex.MULTILINE).finditer(text, timeout=LIMIT_S)}
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


def find_in_lines(pattern: str, lines: Sequence[str]) -> list[regex.Match[str] | None]:
    """Return the first match in each line; the time limit is for all lines together.

    Raises:
        SlowPatternError: The search took too long.
    """
    compiled = _compile(pattern, 0)
    end_s = time.process_time() + LIMIT_S
    try:
        return [compiled.search(line, timeout=max(0.0, end_s - time.process_time())) for line in lines]
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


class UntilSlow(Generic[_Read]):
    """Reads the live output of a run until a search takes too long; the run continues without being read."""

    def __init__(self, read: Callable[[str], _Read | None]) -> None:
        """Use `read` until it raises a SlowPatternError."""
        self._read = read
        self._is_slow = False

    def __call__(self, line: str) -> _Read | None:
        """Read one line."""
        if not self._is_slow:
            try:
                return self._read(line)
            except SlowPatternError:
                self._is_slow = True
        return None


@lru_cache(maxsize=256)
def _compile(pattern: str, flags: int) -> regex.Pattern[str]:
    return regex.compile(_BRACE.sub(lambda brace: brace[1] or r"\{", pattern), flags | regex.VERSION0)
