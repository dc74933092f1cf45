"""Thinning: thousands of trials as a picture that is still small."""

from collections.abc import Collection, Sequence
from typing import TypeVar

_Thing = TypeVar("_Thing")


def thinned(things: Sequence[_Thing], most: int, keep: Collection[int] = ()) -> list[_Thing]:
    """Return at most `most` of the things in their order, evenly spread; those at the places `keep` in any case."""
    if len(things) <= most:
        return list(things)
    kept = {place for place in keep if 0 <= place < len(things)}
    others = [place for place in range(len(things)) if place not in kept]
    room = max(0, most - len(kept))
    chosen = {others[(step * len(others)) // room] for step in range(room)}
    return [things[place] for place in sorted(chosen | kept)]


def told(drawn: int, known: int, what: str = "trials") -> str:
    """Say that not everything is drawn; nothing if it is."""
    return f" {drawn:,} of {known:,} {what} are drawn, evenly spread." if drawn < known else ""
