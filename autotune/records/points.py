"""Points: the values that one run measures at several points, such as message sizes."""

from collections.abc import Iterable, Mapping
from math import isfinite
from statistics import median
from typing import Any

from objectives.base import POINTS


def points_of(details: Mapping[str, Any]) -> dict[float, float]:
    """Return the values of a run by point; skip entries that are not pairs of numbers."""
    pairs = (pair for pair in details.get(POINTS, ()) if isinstance(pair, list | tuple) and len(pair) == 2)
    found = ((point, value) for point, value in pairs if _is_number(point) and _is_number(value))
    return {float(point): float(value) for point, value in found}


def median_points(runs: Iterable[Mapping[str, Any]]) -> tuple[tuple[float, float], ...]:
    """Return the medians by point over the details of several runs, in the order of the points."""
    values: dict[float, list[float]] = {}
    for details in runs:
        for point, value in points_of(details).items():
            values.setdefault(point, []).append(value)
    return tuple((point, median(told)) for point, told in sorted(values.items()))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
