"""What the default costs in each cell: the medians of its runs."""

from collections.abc import Sequence
from statistics import median

from autotune.records.points import points_of
from autotune.records.study import Run
from objectives.base import Metric
from objectives.decisions.decision import Decision
from spaces import Value


def default_values(decisions: Sequence[Decision], runs: Sequence[Run], metric: Metric) -> tuple[float | None, ...]:
    """Return the median of the default's runs in each cell, in tuning and in fresh pairs; None where it has not run."""
    values: dict[tuple[frozenset[tuple[str, Value]], float | None], list[float]] = {}
    for run in runs:
        if run.outcome.complete:
            key = frozenset(run.configuration.items())
            for point, value in points_of(run.outcome.details).items() or [(None, run.outcome.metrics[metric.name])]:
                values.setdefault((key, point), []).append(value)
    cells = ((frozenset({**one.contexts, **one.default}.items()), one.point) for one in decisions)
    return tuple(median(values[cell]) if cell in values else None for cell in cells)
