"""The decision table as rows of text: what `best` and the report print."""

from collections.abc import Mapping

from autotune.decisions.ranges import DecisionRange, axis_of, ranges
from autotune.decisions.table import DecisionTable
from autotune.formatting import shown, written
from objectives.decision import Decision


def columns_of(table: DecisionTable) -> list[str]:
    """Return the titles of the columns of `rows_of`."""
    axis = axis_of(table)
    where = [] if axis is None else [axis]
    share = [] if table.shares is None else ["share of the time"]
    ratio = ["over the default", f"{table.confidence:.0%} interval", "pairs"]
    return [*_others(table, axis), *where, *share, "use", *ratio]


def rows_of(table: DecisionTable) -> list[list[str]]:
    """Return a row for each range of cells with the same decision."""
    shares = {} if table.shares is None else dict(zip(map(_cell, table.decisions), table.shares.by_cell, strict=True))
    return [_row(table, one, shares) for one in ranges(table)]


def _cell(decision: Decision) -> tuple[str, float | None]:
    return shown(decision.contexts), decision.point


def _row(table: DecisionTable, found: DecisionRange, shares: Mapping[tuple[str, float | None], float]) -> list[str]:
    interval, is_default = found.interval, found.first.is_default
    ratio = "" if found.ratio is None or (is_default and not found.pairs) else f"{found.ratio:.3f}"
    spread = f"{interval[0]:.3f} to {interval[1]:.3f}" if ratio and interval is not None else ""
    setting = "default" if is_default else shown(found.chosen)
    contexts = [written(found.first.contexts[name]) for name in _others(table, found.axis)]
    where = [] if found.axis is None else [found.where]
    share = [f"{sum(shares[_cell(one)] for one in found.decisions):.1%}"] if shares else []
    return [*contexts, *where, *share, setting, ratio, spread, str(found.pairs) if found.pairs else ""]


def _others(table: DecisionTable, axis: str | None) -> list[str]:
    return [name for name in table.over if name != axis]
