"""Searches for users' regular expressions in what a run printed or wrote, each in bounded time.

A pattern like `(a|aa)+$` can take longer than the age of the universe over a line of a hundred letters, and a search of
`re` cannot be interrupted. `regex` searches with a time limit, lets other threads run meanwhile, and reads patterns as
`re` does, but for `{`, and for classes such as `[[:alpha:]]`.
"""

import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Generic, TypeVar

import regex

# Seconds of processor time; a usual pattern takes one or two for 64 MiB.
LIMIT_S = 10.0

NO_PATTERN = (re.error, OverflowError, RecursionError)
"""What Python says of a text that is no regular expression, or one that is too large for it."""

# For `re` a brace that is no repeat is a letter. `regex` would read `x{e}` as "x, with any number of mistakes".
_BRACE = re.compile(r"(\\N\{|\\.)|\{(?!\d+\}|\d*,\d*\})", re.DOTALL)

_Read = TypeVar("_Read")


class SlowPatternError(Exception):
    """A search took too long: the study file's fault, not the configuration's."""

    code = "slow-pattern"

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the search for the pattern {pattern!r} took more than {LIMIT_S:g} s; alternatives that begin alike in a "
            "repeat, as in (a|aa)+, or several .* can take time without end: write one repeat, and characters that end "
            "it, as in [^,]*"
        )


def find_first(pattern: str, text: str) -> regex.Match[str] | None:
    """Return the first match; `^` and `$` are those of lines.

    Raises:
        SlowPatternError: the search took too long.
    """
    try:
        return _compiled(pattern, regex.MULTILINE).search(text, timeout=LIMIT_S)
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


def find_last(pattern: str, text: str) -> regex.Match[str] | None:
    """Return the last match; `^` and `$` are those of lines.

    Raises:
        SlowPatternError: the search took too long.
    """
    # One match is kept, not all: there may be millions.
    try:
        kept = deque(_compiled(pattern, regex.MULTILINE).finditer(text, timeout=LIMIT_S), maxlen=1)
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error
    return kept[0] if kept else None


def find_distinct(pattern: str, text: str) -> set[str]:
    """Return what the first group of all matches is; `^` and `$` are those of lines.

    Raises:
        SlowPatternError: the search took too long.
    """
    try:
        return {match[1] or "" for match in _compiled(pattern, regex.MULTILINE).finditer(text, timeout=LIMIT_S)}
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


def find_in_lines(pattern: str, lines: Sequence[str]) -> list[regex.Match[str] | None]:
    """Return the first match in each line; the limit is that of all lines together.

    Raises:
        SlowPatternError: the search took too long.
    """
    compiled = _compiled(pattern, 0)
    end_s = time.process_time() + LIMIT_S
    try:
        return [compiled.search(line, timeout=max(0.0, end_s - time.process_time())) for line in lines]
    except TimeoutError as error:
        raise SlowPatternError(pattern) from error


class UntilSlow(Generic[_Read]):
    """Reads lines of a run in flight; after a search that took too long it reads no more, and the run goes on."""

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
def _compiled(pattern: str, flags: int) -> regex.Pattern[str]:
    return regex.compile(_BRACE.sub(lambda brace: brace[1] or r"\{", pattern), flags | regex.VERSION0)
