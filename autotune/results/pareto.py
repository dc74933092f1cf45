"""The front of a trade-off: the trials that no other beats in both metrics (Pareto)."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from autotune.records.study import Definition, TrialRecord
from objectives.base import Metric


@dataclass(frozen=True)
class ParetoPoint:
    """A trial on the front, with the medians of both metrics."""

    trial: int
    first: float
    second: float


def second_metric(definition: Definition) -> Metric | None:
    """Return the other metric of a study's trade-off; None if it has none."""
    tradeoff = definition.study.get("tradeoff")
    if not tradeoff:
        return None
    return next(metric for metric in definition.metrics if metric.name == tradeoff["metric"])


def pareto_front(trials: Iterable[TrialRecord], first: Metric, second: Metric) -> list[ParetoPoint]:
    """Return the front, the best by the first metric first; of equals the earlier trial."""
    points = [
        ParetoPoint(trial.number, median(trial.measured(first.name)), median(trial.measured(second.name)))
        for trial in trials
        if trial.complete and trial.measured(first.name) and trial.measured(second.name)
    ]
    front = [point for point in points if not any(_beats(other, point, first, second) for other in points)]
    return sorted(front, key=lambda point: (first.cost(point.first), point.trial))


def _beats(point: ParetoPoint, other: ParetoPoint, first: Metric, second: Metric) -> bool:
    mine, its = ((first.cost(each.first), second.cost(each.second)) for each in (point, other))
    if mine[0] > its[0] or mine[1] > its[1]:
        return False
    return mine != its or point.trial < other.trial
