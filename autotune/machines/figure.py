"""A measured figure: a value that stands for its repeats, and their spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """`value` in the unit that the figure's name says; `spread` is (greatest - least) / median of the repeats."""

    value: float
    spread: float


def best_figure(repeats: Sequence[float]) -> Figure:
    """Return the greatest of some rates: other programs on the machine can only lower a rate."""
    return _of(repeats, max)


def median_figure(repeats: Sequence[float]) -> Figure:
    """Return the median of some repeats."""
    return _of(repeats, median)


def _of(repeats: Sequence[float], choose: Callable[[Sequence[float]], float]) -> Figure:
    if not repeats or min(repeats) <= 0:
        msg = f"a figure needs one or more positive repeats, got {list(repeats)}"
        raise ValueError(msg)
    return Figure(float(choose(repeats)), float((max(repeats) - min(repeats)) / median(repeats)))
