"""Lines of a run in flight, read by users' patterns: those that came together are searched at once.

Each question to the process that searches costs as much as a hundred searches.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from objectives.patterns.search import SearchError

_Said = TypeVar("_Said")


class PatternReader(Generic[_Said]):
    """Reads lines by patterns; once a search came to no end it reads no more, and the run goes on."""

    def __init__(self, search: Callable[[Sequence[str]], Iterable[_Said | None]]) -> None:
        """Use `search`, which says something of each line."""
        self._search = search
        self._is_slow = False

    def __call__(self, line: str) -> _Said | None:
        """Read one line."""
        return self.many([line])[0]

    def many(self, lines: Sequence[str]) -> list[_Said | None]:
        """Read lines that came together."""
        if not self._is_slow:
            try:
                return list(self._search(lines))
            except SearchError:
                self._is_slow = True
        return [None] * len(lines)

    def then(self, change: Callable[[_Said], _Said]) -> "PatternReader[_Said]":
        """Return a reader that changes what this one says."""
        return PatternReader(
            lambda lines: (None if said is None else change(said) for said in self.many(lines)),
        )


def read_each(read: Callable[[str], _Said | None], lines: Sequence[str]) -> Iterable[_Said | None]:
    """Return what a reader says of each line; it is asked line by line, unless it reads many at once."""
    return read.many(lines) if isinstance(read, PatternReader) else map(read, lines)
