"""Thinning: thousands of trials as a picture that is still small."""

from collections.abc import Collection, Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")


def thinned(things: Sequence[_Thing], most: int, keep: Collection[int] = ()) -> list[_Thing]:
    """Return at most `most` of the things in their order, evenly spread; those at the indices `keep` always stay."""
    if len(things) <= most:
        return list(things)
    kept = {index for index in keep if 0 <= index < len(things)}
    others = [index for index in range(len(things)) if index not in kept]
    room = max(0, most - len(kept))
    chosen = {others[(step * len(others)) // room] for step in range(room)}
    return [things[index] for index in sorted(chosen | kept)]


def told(drawn: int, known: int, what: str = "trials") -> str:
    """Return a sentence on the share that is drawn; empty if all are."""
    return f" {drawn:,} of {known:,} {what} are drawn, evenly spread." if drawn < known else ""
