"""The trials that lead a study, the best one or the front of a trade-off, and the news about them."""

from dataclasses import dataclass

from autotune.display.messages import Messages
from autotune.formatting import configuration_text, join_words, quantity
from autotune.results.pareto import ParetoFront, front_of, tradeoff_metrics
from autotune.statistics.standings import Standings
from autotune.studyfile.definition import Definition
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
        compares = definition.study_file.decisions is None
        return cls(Messages(standings, compares=compares, others=metrics[1:]), metrics)

    def numbers(self) -> Numbers:
        """Return the numbers of the leading trials."""
        if self.metrics:
            return tuple(point.trial for point in self._front().points)
        best = self.messages.standings.incumbent
        return () if best is None else (best.number,)

    def news(self, before: Numbers) -> tuple[str, ...]:
        """Describe what changed since the trials `before` led; that the default leads first is no news."""
        now, standings = self.numbers(), self.messages.standings
        is_default = standings.default is not None and now == (standings.default.number,)
        if set(now) == set(before) or not now or (is_default and not before):
            return ()
        if not self.metrics and not self.messages.compares:
            return ()
        if not self.metrics:
            return (f"best so far: {self._line(now[0], self.messages.value(standings.trials[now[0]]))}",)
        front = self._front()
        new = [one for one in front.points if one.trial not in before]
        lines = [f"front: {self._line(one.trial, front.quantities(one))}" for one in new]
        if gone := [f"trial {number}" for number in before if number not in now]:
            lines.append(f"front: {_count(front)}, without {join_words(gone)}")
        return tuple(lines)

    def _line(self, number: int, value: str) -> str:
        configuration = self.messages.standings.trials[number].configuration
        return f"trial {number}, {value}  {configuration_text(configuration)}"

    def subject(self) -> str:
        """Describe the front of a trade-off for a panel; empty without a trade-off or while its front is empty."""
        if not self.metrics or not (front := self._front()).points:
            return ""
        values = zip(front.metrics, zip(*(point.values for point in front.points), strict=True), strict=True)
        return f"front: {_count(front)}, {', '.join(_span(metric, known) for metric, known in values)}"

    def _front(self) -> ParetoFront:
        return front_of(self.messages.standings, self.metrics)


def _count(front: ParetoFront) -> str:
    return "1 point" if len(front.points) == 1 else f"{len(front.points)} points"


def _span(metric: Metric, values: tuple[float, ...]) -> str:
    low, high = quantity(min(values), metric), quantity(max(values), metric)
    return f"{metric.name} {low}" + (f" to {high}" if low != high else "")
