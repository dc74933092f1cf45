"""The sides of a comparison, and their runs by rounds.

Sides are compared by their values without what others took from the runs: on a busy machine the runs of a pair suffer
differently, and their measured values compare the neighbours.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import hypot
from statistics import fmean, median
from typing import Self

from autotune.records.study import Run, TrialRecord
from autotune.statistics.ratio_words import Interval
from autotune.statistics.slowdowns import Slowdowns
from autotune.statistics.verdict import FAILED_OFTEN, known_interval
from objectives.base import Metric
from spaces import Configuration


@dataclass(frozen=True)
class Side:
    """A configuration in a comparison; `trial` is the number of its trial, None if it has none."""

    label: str
    configuration: Configuration
    trial: int | None = None

    @classmethod
    def of(cls, trial: TrialRecord, label: str) -> "Side":
        """Return the side of a trial."""
        return cls(label, trial.configuration, trial.number)


@dataclass(frozen=True)
class RoundTable:
    """The runs of a series so far.

    Attributes:
        sides: The configurations.
        runs: The runs by (round, side).
        metric: The metric to compare.
        over_nodes: Whether the rounds use several nodes; a pair then counts only if both runs used the same node.
    """

    sides: tuple[Side, ...]
    runs: Mapping[tuple[int, int], Run]
    metric: Metric
    over_nodes: bool = False

    @classmethod
    def of(cls, sides: tuple[Side, ...], runs: Iterable[Run], metric: Metric, *, over_nodes: bool = False) -> Self:
        """Return the table of those `runs` of one series that are of the sides' configurations."""
        places = {frozenset(side.configuration.items()): index for index, side in enumerate(sides)}
        placed = ((run, places.get(frozenset(run.configuration.items()))) for run in runs)
        return cls(sides, {(run.round, side): run for run, side in placed if side is not None}, metric, over_nodes)

    def values(self, side: int) -> dict[int, float]:
        """Return the values of the metric of one side as measured, by round."""
        return {
            number: run.outcome.metrics[self.metric.name]
            for (number, other), run in sorted(self.runs.items(), key=lambda item: item[0])
            if other == side and run.outcome.complete and self.metric.name in run.outcome.metrics
        }

    def undisturbed(self, side: int) -> dict[int, float]:
        """Return the values of the metric of one side without what others took from its runs, by round."""
        slowdowns = self._slowdowns[side]
        return {
            number: slowdowns.undisturbed(value, self.runs[number, side].outcome)
            for number, value in self.values(side).items()
        }

    @cached_property
    def _slowdowns(self) -> list[Slowdowns]:
        """The slowdowns of each side.

        Sides with equally many cores share one effect. With more cores a run suffers more, since its threads or ranks
        wait for the slowest one.
        """
        runs = {side: self.runs_of(side) for side in range(len(self.sides))}
        cores = {side: made[0].cores if made else 0 for side, made in runs.items()}
        learnt = {
            count: Slowdowns.learnt(
                self.metric, [[run.outcome for run in made] for side, made in runs.items() if cores[side] == count]
            )
            for count in set(cores.values())
        }
        return [learnt[cores[side]] for side in runs]

    def unknown(self, first: int, second: int) -> float:
        """Return how uncertain the ratio of two sides is because the effect of others is known by an estimate only.

        It is the standard deviation of the ratio's logarithm.
        """
        slowdowns = [self._slowdowns[side] for side in (first, second)]
        numbers = self._rounds_with_both(first, second)
        taken = [
            fmean(self.runs[number, side].outcome.disturbance.slowdown for number in numbers) if numbers else 0.0
            for side in (first, second)
        ]
        if slowdowns[0] is slowdowns[1]:
            return slowdowns[0].error * abs(taken[0] - taken[1])
        return hypot(*(one.error * slowdown for one, slowdown in zip(slowdowns, taken, strict=True)))

    def ratio(self, first: int, second: int, confidence: float) -> Interval | None:
        """Return how many times better the second side is than the first, and the interval; None with too few pairs."""
        return known_interval(self.pairs(first, second), self.metric, confidence, self.unknown(first, second))

    def side_values(self) -> list[tuple[int, int, float]]:
        """Return (side, round, undisturbed value) for every run that counts in the comparison of the sides."""
        sides = range(len(self.sides))
        return [(side, number, value) for side in sides for number, value in self.undisturbed(side).items()]

    def runs_of(self, side: int) -> list[Run]:
        """Return the runs of one side, by round."""
        return [run for (_, other), run in sorted(self.runs.items(), key=lambda item: item[0]) if other == side]

    def side_of(self, configuration: Configuration) -> int | None:
        """Return the side of a configuration; None if no side has it."""
        wanted = dict(configuration)
        return next((index for index, side in enumerate(self.sides) if dict(side.configuration) == wanted), None)

    def medians(self, side: int) -> dict[str, float]:
        """Return the medians of all metrics of one side."""
        runs = [run.outcome.metrics for (_, other), run in self.runs.items() if other == side and run.outcome.complete]
        names = {name for metrics in runs for name in metrics}
        return {name: median(metrics[name] for metrics in runs if name in metrics) for name in sorted(names)}

    def pairs(self, first: int, second: int) -> list[tuple[float, float]]:
        """Return the undisturbed values of two sides in the rounds where both have one."""
        first_values, second_values = self.undisturbed(first), self.undisturbed(second)
        return [(first_values[number], second_values[number]) for number in self._rounds_with_both(first, second)]

    def nodes(self, first: int, second: int) -> list[str]:
        """Return the node of each pair of `pairs`."""
        return [self.runs[number, first].host for number in self._rounds_with_both(first, second)]

    def count_unpaired(self, first: int, second: int) -> int:
        """Return how many rounds have values of both sides that do not count as a pair."""
        return len(self.values(first).keys() & self.values(second).keys()) - len(self._rounds_with_both(first, second))

    def _rounds_with_both(self, first: int, second: int) -> list[int]:
        both = self.values(second)
        rounds = [number for number in self.values(first) if number in both]
        return [n for n in rounds if not self.over_nodes or self.runs[n, first].host == self.runs[n, second].host]

    def overlap(self) -> float | None:
        """Return the share of the longer run's time in which both runs of a pair ran; None if they run in turns."""
        return None

    def failures(self, side: int) -> list[str]:
        """Return the messages of one side's runs that failed or have only a bound."""
        return [
            f"{run.outcome.failure or 'capped'}: {run.outcome.message}"
            for (_, other), run in sorted(self.runs.items())
            if other == side and not run.outcome.complete
        ]

    def named_failures(self, sides: Iterable[int]) -> list[str]:
        """Return the failures of some sides, each with the name of its side."""
        return [f"{self.sides[side].label}: {text}" for side in sides for text in self.failures(side)]

    def remarks(self, side: int) -> list[str]:
        """Return the remarks of one side's complete runs, each once."""
        runs = (run for (_, other), run in sorted(self.runs.items()) if other == side and run.outcome.complete)
        return list(dict.fromkeys(run.outcome.remark for run in runs if run.outcome.remark))

    def is_reliable(self, side: int) -> bool:
        """Whether a side has failed seldom enough to be run again."""
        return len(self.failures(side)) < FAILED_OFTEN
