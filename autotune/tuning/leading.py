"""Leading: which trials lead as a study goes on, the best one or the front of a trade-off, and what is new there."""

from dataclasses import dataclass

from autotune.display.messages import Messages
from autotune.formatting import listed, quantity
from autotune.records.study import Definition
from autotune.results.pareto import ParetoFront, pareto_front, tradeoff_metrics
from autotune.statistics.standings import Standings
from autotune.studyfile.stored import study_of
from objectives.base import Metric

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Leading:
    """The trials that lead, of those that `telling` speaks of: the front where there are `metrics` of a trade-off."""

    telling: Messages
    metrics: tuple[Metric, ...]

    @classmethod
    def of(cls, standings: Standings, definition: Definition) -> "Leading":
        """Return what leads a study, and how that is told."""
        metrics = tradeoff_metrics(definition)
        compares = study_of(definition).decisions is None
        return cls(Messages(standings, compares=compares, others=metrics[1:]), metrics)

    def numbers(self) -> Numbers:
        """Return the numbers of the trials that lead."""
        if self.metrics:
            return tuple(point.trial for point in self._front().points)
        best = self.telling.standings.incumbent
        return () if best is None else (best.number,)

    def news(self, before: Numbers) -> tuple[str, ...]:
        """Say what is new beside the numbers that led `before`; nothing of the first."""
        now = self.numbers()
        if not before or set(now) == set(before) or not now:
            return ()
        if not self.metrics:
            best = self.telling.standings.trials[now[0]]
            return (f"best so far: trial {best.number}, {self.telling.value(best)}",) if self.telling.compares else ()
        front = self._front()
        new = [f"trial {one.trial} ({front.quantities(one)})" for one in front.points if one.trial not in before]
        gone = [f"trial {number}" for number in before if number not in now]
        parts = [f"new: {listed(new)}" if new else "", f"no longer on it: {listed(gone)}" if gone else ""]
        return ("; ".join([f"front: {_count(front)}", *filter(None, parts)]),)

    def subject(self) -> str:
        """Describe the front of a trade-off, for a panel; nothing without one, or without a point on it."""
        if not self.metrics or not (front := self._front()).points:
            return ""
        values = zip(front.metrics, zip(*(point.values for point in front.points), strict=True), strict=True)
        return f"front: {_count(front)}, {', '.join(_span(metric, known) for metric, known in values)}"

    def _front(self) -> ParetoFront:
        standings = self.telling.standings
        keeping = (trial for trial in standings.trials.values() if standings.limits.keeps(trial.number))
        return pareto_front(keeping, self.metrics)


def _count(front: ParetoFront) -> str:
    return "1 point" if len(front.points) == 1 else f"{len(front.points)} points"


def _span(metric: Metric, values: tuple[float, ...]) -> str:
    low, high = quantity(min(values), metric), quantity(max(values), metric)
    return f"{metric.name} {low}" + (f" to {high}" if low != high else "")
