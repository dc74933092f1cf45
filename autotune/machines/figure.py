"""A measured figure: one value for all repeats of a measurement, and their spread."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """A figure from several repeats.

    Attributes:
        value: In the unit that ends the name of the figure.
        spread: (greatest - least) / median of the repeats.
    """

    value: float
    spread: float


def best_figure(repeats: Sequence[float]) -> Figure:
    """Return the figure of some rates by the greatest of them: other programs on the machine only lower a rate."""
    return _of(repeats, max)


def median_figure(repeats: Sequence[float]) -> Figure:
    """Return the figure of some repeats by their median."""
    return _of(repeats, median)


def _of(repeats: Sequence[float], choose: Callable[[Sequence[float]], float]) -> Figure:
    if not repeats or min(repeats) <= 0:
        msg = f"a figure needs one or more positive repeats, got {list(repeats)}"
        raise ValueError(msg)
    return Figure(float(choose(repeats)), float((max(repeats) - min(repeats)) / median(repeats)))
