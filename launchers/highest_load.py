"""Finds the highest load that keeps its limits, from loads that keep them or break them by chance.

Just below the highest load some loads break their limits, just above it some keep them, and a disturbed machine breaks
them anywhere. So no load decides alone. Each is evidence about where the highest is, and the next one runs at the
median of what is known: probabilistic bisection (Horstein 1963; Waeber, Frazier & Henderson 2013; as QUEST, Watson &
Pelli 1983, in psychophysics).
"""

import itertools
import math
from collections.abc import Sequence

LOADS = 7
"""The loads of a search, at most."""

_STEP = 0.01  # of the logarithms of the loads that may be the highest
_SPREAD = 0.1  # standard deviation of the logarithm of the load that a run of it seems to bear
_LOGISTIC = 1.7  # a logistic curve this much steeper is that of a normal distribution
_NEAR = 0.4  # standard deviation of the logarithm of the highest load around the start
_ROUGHLY, _HARDLY = 4, 0.01  # loads after which a search may end that comes near its start with this probability
_DISTURBED = 0.1  # of the loads break their limits however low they are
_LUCKY = 0.01  # of the loads keep their limits however high they are


def next_load(
    low: float, high: float, kept: Sequence[tuple[float, bool]], start: float | None = None, shift: float = 0.0
) -> float | None:
    """Return the next load to run; None at the end of the search.

    The ends are run only if all other loads were on one side of their limits, or the next would lie beyond them. A
    search that surely ends below its start ends sooner: how far below matters less.

    Args:
        low: The lowest load.
        high: The highest load; both are whole numbers if only these are to be tried.
        kept: The loads that have run, and whether each kept its limits.
        start: A load near which the highest may be; None if nothing is known.
        shift: By what part of the spread of chance all loads are shifted, from -0.5 to 0.5.
    """
    left, is_lower, is_higher = LOADS - len(kept), (low, False), (high, True)
    answers = {answer for _, answer in kept}
    if left <= 0 or is_higher in kept or (True not in answers and list(kept).count(is_lower) > 1):
        return None
    if kept and left <= 2 and answers == {False}:
        return low
    if kept and left == 1 and answers == {True}:
        return high
    chances = _chances(low, high, kept, start)
    if start is not None and len(kept) >= _ROUGHLY and _reaches(chances, min(start, high)) < _HARDLY:
        return None
    load = min(max(_median(chances) * math.exp(shift * _SPREAD), low), high)
    return round(load) if _is_whole(low, high) else load


def highest_load(low: float, high: float, kept: Sequence[tuple[float, bool]], start: float | None = None) -> float:
    """Return the load that keeps its limits as often as not, by the evidence of the loads that have run.

    Args:
        low: The lowest load.
        high: The highest load; both are whole numbers if only these are to be found.
        kept: The loads that have run, and whether each kept its limits.
        start: A load near which the highest may be; None if nothing is known.
    """
    if (high, True) in kept:
        return high
    load = min(max(_median(_chances(low, high, kept, start)), low), high)
    return math.floor(load) if _is_whole(low, high) else load


def reported_load(kept: Sequence[tuple[float, bool]], highest: float) -> int:
    """Return the position of the load whose figures are reported.

    It is the one nearest to the highest of those that kept their limits; if none did, the last of the lowest load.
    """
    good = [i for i, (_, is_kept) in enumerate(kept) if is_kept]
    if good:
        return min(good, key=lambda i: abs(math.log(kept[i][0] / highest)))
    return min(range(len(kept)), key=lambda i: (kept[i][0], -i))


def _is_whole(low: float, high: float) -> bool:
    return isinstance(low, int) and isinstance(high, int)


def _chances(
    low: float, high: float, kept: Sequence[tuple[float, bool]], start: float | None = None
) -> list[tuple[float, float]]:
    """Return the logarithms of the loads that may be the highest, also beyond the ends, with their probabilities.

    Without any loads, it is spread evenly; if a start is given, three quarters of it are near that.
    """
    # Three spreads beyond an end, loads at that end say nothing more.
    first, last = math.log(low) - 3 * _SPREAD, math.log(high) + 3 * _SPREAD
    count = round((last - first) / _STEP) + 1
    places = [first + (last - first) * i / (count - 1) for i in range(count)]
    weights = [1.0] * count
    if start is not None:
        height = 3.0 * (last - first) / (_NEAR * math.sqrt(2.0 * math.pi))
        weights = [1.0 + height * math.exp(-(((place - math.log(start)) / _NEAR) ** 2) / 2.0) for place in places]
    for load, is_kept in kept:
        at = math.log(load)
        for i, place in enumerate(places):
            bears = 1.0 / (1.0 + math.exp(_LOGISTIC * min(50.0, (at - place) / _SPREAD)))
            chance = _LUCKY + (1.0 - _DISTURBED - _LUCKY) * bears
            weights[i] *= chance if is_kept else 1.0 - chance
    total = sum(weights)
    return [(place, weight / total) for place, weight in zip(places, weights, strict=True)]


def _reaches(chances: Sequence[tuple[float, float]], start: float) -> float:
    """Return how likely the highest load is more than the start, or at most the spread of chance less."""
    return sum(chance for place, chance in chances if place > math.log(start) - _SPREAD)


def _median(chances: Sequence[tuple[float, float]]) -> float:
    sums = itertools.accumulate(chance for _, chance in chances)
    return math.exp(next((place for (place, _), sum_ in zip(chances, sums, strict=True) if sum_ >= 0.5)))
