"""The trials that lead a study, the best one or the front of a trade-off, and the news about them."""

from dataclasses import dataclass

from autotune.display.messages import Messages
from autotune.formatting import join_words, quantity
from autotune.records.study import Definition
from autotune.results.pareto import ParetoFront, pareto_front, tradeoff_metrics
from autotune.statistics.standings import Standings
from autotune.studyfile.stored import study_of
from objectives.base import Metric

Numbers = tuple[int, ...]


@dataclass(frozen=True)
class Leaders:
    """The trials that lead a study.

    Attributes:
        messages: Phrases the news, and has the standings of the trials.
        metrics: The metrics of a trade-off, whose front leads; empty if the best trial leads.
    """

    messages: Messages
    metrics: tuple[Metric, ...]

    @classmethod
    def of(cls, standings: Standings, definition: Definition) -> "Leaders":
        """Return the leaders of a study and how news about them is phrased."""
        metrics = tradeoff_metrics(definition)
        compares = study_of(definition).decisions is None
        return cls(Messages(standings, compares=compares, others=metrics[1:]), metrics)

    def numbers(self) -> Numbers:
        """Return the numbers of the leading trials."""
        if self.metrics:
            return tuple(point.trial for point in self._front().points)
        best = self.messages.standings.incumbent
        return () if best is None else (best.number,)

    def news(self, before: Numbers) -> tuple[str, ...]:
        """Describe what changed since the trials `before` led; the first leaders are no news."""
        now = self.numbers()
        if not before or set(now) == set(before) or not now:
            return ()
        if not self.metrics:
            best = self.messages.standings.trials[now[0]]
            return (f"best so far: trial {best.number}, {self.messages.value(best)}",) if self.messages.compares else ()
        front = self._front()
        new = [f"trial {one.trial} ({front.quantities(one)})" for one in front.points if one.trial not in before]
        gone = [f"trial {number}" for number in before if number not in now]
        parts = [f"new: {join_words(new)}" if new else "", f"no longer on it: {join_words(gone)}" if gone else ""]
        return ("; ".join([f"front: {_count(front)}", *filter(None, parts)]),)

    def subject(self) -> str:
        """Describe the front of a trade-off for a panel; empty without a trade-off or while its front is empty."""
        if not self.metrics or not (front := self._front()).points:
            return ""
        values = zip(front.metrics, zip(*(point.values for point in front.points), strict=True), strict=True)
        return f"front: {_count(front)}, {', '.join(_span(metric, known) for metric, known in values)}"

    def _front(self) -> ParetoFront:
        standings = self.messages.standings
        keeping = (trial for trial in standings.trials.values() if standings.limits.keeps(trial.number))
        return pareto_front(keeping, self.metrics)


def _count(front: ParetoFront) -> str:
    return "1 point" if len(front.points) == 1 else f"{len(front.points)} points"


def _span(metric: Metric, values: tuple[float, ...]) -> str:
    low, high = quantity(min(values), metric), quantity(max(values), metric)
    return f"{metric.name} {low}" + (f" to {high}" if low != high else "")
