"""The front of a trade-off: the trials that no other beats in all metrics (Pareto)."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

from autotune.formatting import configuration_text, join_words, quantity
from autotune.records.study import TrialRecord
from autotune.statistics.standings import Standings
from autotune.studyfile.definition import Definition
from objectives.base import Metric


@dataclass(frozen=True)
class ParetoPoint:
    """A trial on the front, with the median of each metric of the front."""

    trial: int
    values: tuple[float, ...]


@dataclass(frozen=True)
class ParetoFront:
    """The points that no other beats in all metrics.

    Attributes:
        metrics: The metrics of the trade-off, the optimised one first.
        points: The points, the best by the first metric first.
        limited: Whether only trials that keep the limits compete.
    """

    metrics: tuple[Metric, ...]
    points: tuple[ParetoPoint, ...]
    limited: bool = False

    @property
    def others(self) -> str:
        """The words for the trials that do not beat the points."""
        return f"no other trial{' that keeps the limits' if self.limited else ''}"

    @property
    def names(self) -> str:
        """The names of the metrics as `a, b and c`."""
        return join_words([metric.name for metric in self.metrics])

    @property
    def of_them(self) -> str:
        """The words for the metrics in which a trial must be better to beat another: `both` or `all 3`."""
        return "both" if len(self.metrics) == 2 else f"all {len(self.metrics)}"

    @property
    def equal_weights(self) -> str:
        """An example for `--weights`, with the same weight for all metrics."""
        return ",".join(f"{metric.name}=1" for metric in self.metrics)

    def text(self, standings: Standings) -> str:
        """Return the front in words, a line for each point."""
        if not self.points:
            return "no valid measurement yet"
        lines = [f"the trade-off between {self.names}: {self.others} is better in {self.of_them}"]
        lines += [
            f"trial {number}: {self.quantities(point)}  {configuration_text(standings.trials[number].configuration)}"
            for number, point in ((point.trial, point) for point in self.points)
        ]
        return "\n".join(lines)

    def costs(self, point: ParetoPoint) -> tuple[float, ...]:
        """Return the values of a point, with signs such that lower is better."""
        return _costs(point, self.metrics)

    def quantities(self, point: ParetoPoint) -> str:
        """Return the values of a point with their units."""
        return ", ".join(quantity(value, metric) for value, metric in zip(point.values, self.metrics, strict=True))

    def to_dict(self) -> list[dict[str, Any]]:
        """Return the JSON-able form."""
        names = [metric.name for metric in self.metrics]
        return [{"trial": point.trial, "values": dict(zip(names, point.values, strict=True))} for point in self.points]


def tradeoff_metrics(definition: Definition) -> tuple[Metric, ...]:
    """Return the metrics of a study's trade-off, the optimised one first; empty without a trade-off."""
    tradeoff = definition.study_file.tradeoff
    if tradeoff is None:
        return ()
    known = {metric.name: metric for metric in definition.metrics}
    return (definition.target, *(known[name] for name in tradeoff.metric))


def points_of(trials: Iterable[TrialRecord], metrics: tuple[Metric, ...]) -> list[ParetoPoint]:
    """Return the complete trials in which all metrics were measured, as points."""
    measured = (
        (trial.number, [trial.measured(metric.name) for metric in metrics]) for trial in trials if trial.complete
    )
    return [ParetoPoint(number, tuple(map(median, values))) for number, values in measured if all(values)]


def pareto_front(trials: Iterable[TrialRecord], metrics: tuple[Metric, ...], *, limited: bool = False) -> ParetoFront:
    """Return the front; of equal trials it has the earliest."""
    front: list[tuple[tuple[float, ...], ParetoPoint]] = []
    costed = [(_costs(point, metrics), point) for point in points_of(trials, metrics)]
    # In this order no trial is beaten by a later one.
    for costs, point in sorted(costed, key=lambda each: (each[0], each[1].trial)):
        if not any(all(a <= b for a, b in zip(other, costs, strict=True)) for other, _ in front):
            front.append((costs, point))
    return ParetoFront(metrics, tuple(point for _, point in front), limited)


def front_of(standings: Standings, metrics: tuple[Metric, ...]) -> ParetoFront:
    """Return the front of the trials that keep the limits."""
    limits = standings.limits
    trials = (trial for trial in standings.trials.values() if limits.keeps(trial.number))
    return pareto_front(trials, metrics, limited=bool(limits.limits))


def _costs(point: ParetoPoint, metrics: tuple[Metric, ...]) -> tuple[float, ...]:
    return tuple(metric.cost(value) for metric, value in zip(metrics, point.values, strict=True))
