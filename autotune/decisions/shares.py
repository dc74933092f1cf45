"""How the time of a program is shared out over the cells of a decision table."""

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.search.decisions.weights import Usage
from objectives.base import Metric
from objectives.decision import Decision
from spaces import Value


@dataclass(frozen=True)
class Shares:
    """Shares of the time with the default, by cell; `outside` is the share of the uses that are in no cell."""

    by_cell: tuple[float, ...]
    outside: float


def shares_of(
    usage: Usage, decisions: Sequence[Decision], defaults: Sequence[float | None], metric: Metric
) -> Shares | None:
    """Return the shares of cells in which the default costs `defaults`; None without weights, or known costs."""
    if not usage.rows or not decisions:
        return None
    contexts: list[dict[str, Value]] = []
    cells: list[list[int]] = []
    for place, decision in enumerate(decisions):
        context = dict(decision.contexts)
        if not contexts or contexts[-1] != context:
            contexts.append(context)
            cells.append([])
        cells[-1].append(place)
    points = [[point for place in own if (point := decisions[place].point) is not None] for own in cells]
    counts, outside = usage.counts(contexts, points)
    times = [0.0] * len(decisions)
    for (group, column), count in counts.items():
        place = cells[group][column]
        value = defaults[place] or 0.0
        times[place] = 0.0 if value <= 0.0 else count / value if metric.direction == "maximize" else count * value
    whole = sum(times)
    return Shares(tuple(time / whole for time in times), outside) if whole > 0.0 else None
