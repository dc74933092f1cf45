"""A program that looks for regular expressions: its caller outlives a search that has no end.

It is started by its path, with nothing but the standard library. A line of JSON asks, and the texts follow it, each
of the size in bytes that it says; a line of JSON answers. What takes more processor time than it may ends the
program, by a signal: `re` looks at no clock, and at no other thread.
"""

import json
import re
import signal
import sys
from typing import Any


def answer(question: dict[str, Any], texts: list[str]) -> list[Any]:
    """Return what was found, for each text in turn."""
    compiled = re.compile(question["pattern"], question["flags"])
    return [_KINDS[question["kind"]](compiled, text) for text in texts]


def _found(match: re.Match[str] | None) -> dict[str, Any] | None:
    if match is None:
        return None
    return {"start": match.start(), "end": match.end(), "groups": match.groups(), "names": match.groupdict()}


def _first(pattern: re.Pattern[str], text: str) -> dict[str, Any] | None:
    return _found(pattern.search(text))


def _last(pattern: re.Pattern[str], text: str) -> dict[str, Any] | None:
    # One match is kept, not all: there may be millions.
    last = None
    for match in pattern.finditer(text):
        last = match
    return _found(last)


def _distinct(pattern: re.Pattern[str], text: str) -> list[str]:
    return sorted({match[1] or "" for match in pattern.finditer(text)})


_KINDS = {"first": _first, "last": _last, "distinct": _distinct}


def main() -> None:
    """Answer until there are no more questions."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    while line := sys.stdin.buffer.readline():
        question = json.loads(line)
        texts = [sys.stdin.buffer.read(size).decode("utf-8", "surrogatepass") for size in question["sizes"]]
        signal.setitimer(signal.ITIMER_PROF, question["limit_s"])
        found = answer(question, texts)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.buffer.write(json.dumps(found).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
