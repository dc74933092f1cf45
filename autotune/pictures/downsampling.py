"""Draw only some of thousands of trials, so that a picture stays small."""

from collections.abc import Collection, Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")


def thin(things: Sequence[_Thing], most: int, keep: Collection[int] = ()) -> list[_Thing]:
    """Return at most `most` things in their order, evenly spread; things at the indices `keep` always stay."""
    if len(things) <= most:
        return list(things)
    kept = {index for index in keep if 0 <= index < len(things)}
    others = [index for index in range(len(things)) if index not in kept]
    room = max(0, most - len(kept))
    chosen = {others[(step * len(others)) // room] for step in range(room)}
    return [things[index] for index in sorted(chosen | kept)]


def thinning_note(drawn: int, known: int, what: str = "trials") -> str:
    """Return a sentence on how many things are drawn; empty if all are."""
    return f" {drawn:,} of {known:,} {what} are drawn, evenly spread." if drawn < known else ""
