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
_OWN_SHARE = 0.9

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
    compiled = _compile(pattern, regex.MULTILINE)
    return _in_time(pattern, lambda limit_s: compiled.search(text, timeout=limit_s))


def find_last(pattern: str, text: str) -> regex.Match[str] | None:
    """Return the last match; `^` and `$` match at line ends.

    Raises:
        SlowPatternError: The search took too long.
    """
    compiled = _compile(pattern, regex.MULTILINE)
    # Keep one match only: there may be millions.
    kept = _in_time(pattern, lambda limit_s: deque(compiled.finditer(text, timeout=limit_s), maxlen=1))
    return kept[0] if kept else None


def match_at(pattern: regex.Pattern[str], text: str, start: int) -> regex.Match[str] | None:
    """Return the match of a compiled pattern that begins at `start`.

    Raises:
        SlowPatternError: The search took too long.
    """
    return _in_time(pattern.pattern, lambda limit_s: pattern.match(text, start, timeout=limit_s))


def find_distinct(pattern: str, text: str) -> set[str]:
    """Return the distinct texts of the first group over all matches; `^` and `$` match at line ends.

    Raises:
        SlowPatternError: The search took too long.
    """
    compiled = _compile(pattern, regex.MULTILINE)
    return _in_time(pattern, lambda limit_s: {match[1] or "" for match in compiled.finditer(text, timeout=limit_s)})


def find_in_lines(pattern: str, lines: Sequence[str]) -> list[regex.Match[str] | None]:
    """Return the first match in each line; the time limit is for all lines together.

    Raises:
        SlowPatternError: The search took too long.
    """
    compiled = _compile(pattern, 0)

    def search(limit_s: float) -> list[regex.Match[str] | None]:
        end_s = time.process_time() + limit_s
        return [compiled.search(line, timeout=max(0.0, end_s - time.process_time())) for line in lines]

    return _in_time(pattern, search)


def _in_time(pattern: str, search: Callable[[float], _Read]) -> _Read:
    """Return the result of a search, which is given its limit in seconds of CPU time.

    Raises:
        SlowPatternError: The search took too long.
    """
    limit_s = LIMIT_S
    while True:
        began_s = time.thread_time()
        try:
            return search(limit_s)
        except TimeoutError as error:
            # `regex` counts the time of all threads of this process: other searches may have used most of it.
            if time.thread_time() - began_s >= _OWN_SHARE * LIMIT_S:
                raise SlowPatternError(pattern) from error
            limit_s *= 2.0


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
