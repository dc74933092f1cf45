"""Ranges: neighbouring cells of a table with the same decision, as one line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp, log
from statistics import fmean

from autotune.decisions.table import DecisionTable
from autotune.formatting import sized
from autotune.search.decisions.grid import number
from objectives.decision import Decision
from spaces import Configuration, Value


@dataclass(frozen=True)
class DecisionRange:
    """Decisions that are equal, from the first to the last of an ordered `axis`: the points, or a context."""

    axis: str | None
    decisions: tuple[Decision, ...]

    @property
    def first(self) -> Decision:
        """The decision at its beginning."""
        return self.decisions[0]

    @property
    def chosen(self) -> Configuration:
        """What is used there."""
        return self.first.chosen

    @property
    def ends(self) -> tuple[Value, Value] | None:
        """The first and the last value of the axis; None without one."""
        if self.axis is None:
            return None
        first, last = (place_of(decision, self.axis) for decision in (self.first, self.decisions[-1]))
        return first, last

    @property
    def where(self) -> str:
        """Its first and last value in words: `8 to 1 MiB`; empty without an axis."""
        if self.axis is None or self.ends is None:
            return ""
        return " to ".join(dict.fromkeys(sized(end, self.axis) for end in self.ends))

    @property
    def ratio(self) -> float | None:
        """The geometric mean of the ratios; None where none is known."""
        known = [log(decision.ratio) for decision in self.decisions if decision.ratio is not None]
        return exp(fmean(known)) if known else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """From the lowest end of all intervals to the highest; None where none is known."""
        lows = [decision.low for decision in self.decisions if decision.low is not None]
        highs = [decision.high for decision in self.decisions if decision.high is not None]
        return (min(lows), max(highs)) if lows and highs else None

    @property
    def pairs(self) -> int:
        """The least number of pairs of runs that a decision has."""
        return min(decision.pairs for decision in self.decisions)


def axis_of(table: DecisionTable) -> str | None:
    """Return what ranges run over: the points, or the last context that has an order; None without one."""
    if any(decision.point is not None for decision in table.decisions):
        return table.points or "point"
    return next((name for name in reversed(table.over) if _is_ordered(table.decisions, name)), None)


def ranges(table: DecisionTable) -> list[DecisionRange]:
    """Return the table as ranges along its axis."""
    axis = axis_of(table)
    if axis is None:
        return [DecisionRange(None, (decision,)) for decision in table.decisions]
    return [
        DecisionRange(axis, tuple(run))
        for cells in by_context(table.decisions, axis)
        for _, run in groupby(cells, key=lambda decision: (sorted(decision.chosen.items()), decision.pairs > 0))
    ]


def by_context(decisions: Sequence[Decision], axis: str) -> Iterator[list[Decision]]:
    """Return the decisions of each context along the axis, in their order."""
    groups: dict[tuple[tuple[str, Value], ...], list[Decision]] = {}
    for decision in decisions:
        others = tuple((name, value) for name, value in decision.contexts.items() if name != axis)
        groups.setdefault(others, []).append(decision)
    for cells in groups.values():
        yield sorted(cells, key=lambda decision: number(place_of(decision, axis)) or 0.0)


def place_of(decision: Decision, axis: str) -> Value:
    """Return where a decision lies on the axis."""
    return decision.point if decision.point is not None else decision.contexts[axis]


def _is_ordered(decisions: Sequence[Decision], name: str) -> bool:
    return bool(decisions) and all(number(decision.contexts[name]) is not None for decision in decisions)
