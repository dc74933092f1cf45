"""Ranges of a decision table: neighbouring cells with the same decision as one line, also as rows of text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp, log
from statistics import fmean

from autotune.decisions.table import DecisionTable
from autotune.formatting import configuration_text, parameter_text, value_text
from autotune.search.decisions.grid import number
from objectives.decision import Decision
from spaces import Configuration, Value


@dataclass(frozen=True)
class DecisionRange:
    """Equal decisions of neighbouring cells.

    Attributes:
        axis: The name of the points, or of the ordered context, along which they are neighbours; None without an axis.
        decisions: The decisions, in the order of the axis.
    """

    axis: str | None
    decisions: tuple[Decision, ...]

    @property
    def first(self) -> Decision:
        """The first decision."""
        return self.decisions[0]

    @property
    def chosen(self) -> Configuration:
        """The setting to use."""
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
        return " to ".join(dict.fromkeys(parameter_text(end, self.axis) for end in self.ends))

    @property
    def ratio(self) -> float | None:
        """The geometric mean of the known ratios; None without any."""
        known = [log(decision.ratio) for decision in self.decisions if decision.ratio is not None]
        return exp(fmean(known)) if known else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The lowest and the highest end of all known intervals; None without any."""
        lows = [decision.low for decision in self.decisions if decision.low is not None]
        highs = [decision.high for decision in self.decisions if decision.high is not None]
        return (min(lows), max(highs)) if lows and highs else None

    @property
    def pairs(self) -> int:
        """The smallest number of pairs of its decisions."""
        return min(decision.pairs for decision in self.decisions)


def axis_of(table: DecisionTable) -> str | None:
    """Return the axis of the ranges: the points, or the last context with an order; None without either."""
    if any(decision.point is not None for decision in table.decisions):
        return table.points or "point"
    return next((name for name in reversed(table.over) if _is_ordered(table.decisions, name)), None)


def ranges(table: DecisionTable) -> list[DecisionRange]:
    """Return the ranges of a table along its axis."""
    axis = axis_of(table)
    if axis is None:
        return [DecisionRange(None, (decision,)) for decision in table.decisions]
    return [
        DecisionRange(axis, tuple(run))
        for cells in by_context(table.decisions, axis)
        for _, run in groupby(cells, key=lambda decision: (sorted(decision.chosen.items()), decision.pairs > 0))
    ]


def by_context(decisions: Sequence[Decision], axis: str) -> Iterator[list[Decision]]:
    """Yield the decisions of each context in the order of the axis."""
    groups: dict[tuple[tuple[str, Value], ...], list[Decision]] = {}
    for decision in decisions:
        others = tuple((name, value) for name, value in decision.contexts.items() if name != axis)
        groups.setdefault(others, []).append(decision)
    for cells in groups.values():
        yield sorted(cells, key=lambda decision: number(place_of(decision, axis)) or 0.0)


def place_of(decision: Decision, axis: str) -> Value:
    """Return the position of a decision on the axis."""
    return decision.point if decision.point is not None else decision.contexts[axis]


def _is_ordered(decisions: Sequence[Decision], name: str) -> bool:
    return bool(decisions) and all(number(decision.contexts[name]) is not None for decision in decisions)


def columns_of(table: DecisionTable) -> list[str]:
    """Return the column titles of `rows_of`."""
    axis = axis_of(table)
    where = [] if axis is None else [axis]
    share = [] if table.shares is None else ["share of the time"]
    ratio = ["over the default", f"{table.confidence:.0%} interval", "pairs"]
    return [*_others(table, axis), *where, *share, "use", *ratio]


def rows_of(table: DecisionTable) -> list[list[str]]:
    """Return a row of text for each range."""
    shares = {} if table.shares is None else dict(zip(map(_cell, table.decisions), table.shares.by_cell, strict=True))
    return [_row(table, one, shares) for one in ranges(table)]


def _cell(decision: Decision) -> tuple[str, float | None]:
    return configuration_text(decision.contexts), decision.point


def _row(table: DecisionTable, found: DecisionRange, shares: Mapping[tuple[str, float | None], float]) -> list[str]:
    interval, is_default = found.interval, found.first.is_default
    ratio = "" if found.ratio is None or (is_default and not found.pairs) else f"{found.ratio:.3f}"
    spread = f"{interval[0]:.3f} to {interval[1]:.3f}" if ratio and interval is not None else ""
    setting = "default" if is_default else configuration_text(found.chosen)
    contexts = [value_text(found.first.contexts[name]) for name in _others(table, found.axis)]
    where = [] if found.axis is None else [found.where]
    share = [f"{sum(shares[_cell(one)] for one in found.decisions):.1%}"] if shares else []
    return [*contexts, *where, *share, setting, ratio, spread, str(found.pairs) if found.pairs else ""]


def _others(table: DecisionTable, axis: str | None) -> list[str]:
    return [name for name in table.over if name != axis]
