"""Searches for users' regular expressions in what a run printed or wrote, each in bounded time.

A pattern like `(a+)+$` can take longer than the age of the universe over a line of a hundred letters, and a search
cannot be interrupted from within. So a child process looks, one for each process of ours, started when it is needed
first; it ends itself when a search takes too long, and with the process that asks.
"""

import atexit
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Literal

# Seconds of a processor; 64 MiB are read by an ordinary pattern in about one.
LIMIT_S = 10.0
_CHILD = Path(__file__).with_name("child.py")
_LINES_AT_ONCE = 10_000


NO_PATTERN = (re.error, OverflowError, RecursionError)
"""What Python says of a text that is no regular expression, or one that is too large for it."""


class SearchError(Exception):
    """A search came to no end: not the configuration's fault; `code` names why, for tables."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class SlowPatternError(SearchError):
    """A search took too long: the study file's fault."""

    def __init__(self, pattern: str) -> None:
        super().__init__(
            f"the search for the pattern {pattern!r} took more than {LIMIT_S:g} s; repeats inside repeats, as in "
            "(a+)+, or several .* can take time without end: write one repeat, and characters that end it, as in [^,]*",
            code="slow-pattern",
        )


@dataclass(frozen=True)
class Found:
    """A match: where it is in its text, its groups, and those of them that have names."""

    start: int
    end: int
    groups: tuple[str | None, ...]
    names: dict[str, str | None]


def first(pattern: str, text: str) -> Found | None:
    """Return the first match; `^` and `$` are those of lines.

    Raises:
        SlowPatternError: the search took too long.
    """
    return _match(_ask("first", pattern, [text], re.MULTILINE)[0])


def last(pattern: str, text: str) -> Found | None:
    """Return the last match; `^` and `$` are those of lines.

    Raises:
        SlowPatternError: the search took too long.
    """
    return _match(_ask("last", pattern, [text], re.MULTILINE)[0])


def distinct(pattern: str, text: str) -> set[str]:
    """Return what the first group of all matches is; `^` and `$` are those of lines.

    Raises:
        SlowPatternError: the search took too long.
    """
    return set(_ask("distinct", pattern, [text], re.MULTILINE)[0])


def in_lines(pattern: str, lines: Sequence[str]) -> list[Found | None]:
    """Return the first match in each line.

    Raises:
        SlowPatternError: the search took too long.
    """
    parts = (lines[start : start + _LINES_AT_ONCE] for start in range(0, len(lines), _LINES_AT_ONCE))
    return [_match(match) for part in parts for match in _ask("first", pattern, part, 0)]


def _match(found: dict[str, Any] | None) -> Found | None:
    return None if found is None else Found(found["start"], found["end"], tuple(found["groups"]), found["names"])


class _Searcher:
    """The child of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._child: subprocess.Popen[bytes] | None = None
        self._parent = 0

    def ask(self, question: dict[str, Any], texts: Sequence[str]) -> list[Any] | None:
        """Return what was found in each text; None if the search took too long.

        Raises:
            SearchError: the child does not answer.
        """
        # As they are, behind the question: a text of 64 MiB as JSON would take several times its memory.
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        asked = [json.dumps({**question, "sizes": [len(text) for text in encoded]}).encode() + b"\n", *encoded]
        with self._lock:
            # What ended a child that was idle, like a person who tidies up, says nothing of this question.
            for _ in range(2):
                answer, status = self._exchange(asked)
                if answer.endswith(b"\n"):
                    found: list[Any] = json.loads(answer)
                    return found
                if status == -signal.SIGPROF:
                    return None
        msg = f"the process that searches for patterns ended with status {status}: it may lack memory"
        raise SearchError(msg, code="pattern-search")

    def _exchange(self, asked: Sequence[bytes]) -> tuple[bytes, int | None]:
        child = self._running()
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.writelines(asked)
            child.stdin.flush()
            answer = child.stdout.readline()
        except OSError:
            answer = b""
        except BaseException:
            # Its answer would be taken for that to the next question.
            self._end(child)
            raise
        return (answer, None) if answer.endswith(b"\n") else (b"", self._end(child))

    def _running(self) -> subprocess.Popen[bytes]:
        # A forked process shares the pipes, and must not ask through them.
        if self._child is None or self._parent != os.getpid():
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_CHILD)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
            )
            self._parent = os.getpid()
        return self._child

    def close(self) -> None:
        """End the child of this process."""
        child = self._child
        if child is not None and self._parent == os.getpid():
            child.kill()
            self._end(child)

    def _end(self, child: subprocess.Popen[bytes]) -> int:
        self._child = None
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        # It has ended itself, or ends now that nobody asks; one in the middle of a search has its limit.
        return child.wait()


_SEARCHER = _Searcher()
atexit.register(_SEARCHER.close)


def _ask(kind: Literal["first", "last", "distinct"], pattern: str, texts: Sequence[str], flags: int) -> list[Any]:
    found = _SEARCHER.ask({"kind": kind, "pattern": pattern, "flags": int(flags), "limit_s": LIMIT_S}, texts)
    if found is None:
        raise SlowPatternError(pattern)
    return found
