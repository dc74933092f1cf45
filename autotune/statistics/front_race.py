"""Races for a place on the front of a trade-off: a trial runs again while that could change whether another beats it.

A trial is beaten by one that, after the full number of repeats, is at least about as good in all metrics: it may be
worse by the least gain that matters (epsilon-dominance, Laumanns et al., Evolutionary Computation 10, 2002). The chance
of that is predicted for each metric as in a race for the best (`racing`), and the chances are multiplied, as if the
noise of the metrics were independent. A trial that is certainly beaten, or certainly not, runs no more.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import log

from autotune.records.study import TrialRecord
from autotune.statistics.mixed_model import MeasuredRun, Statistic
from autotune.statistics.racing import RaceRules, Standing, chance_better
from autotune.statistics.samples import Samples
from objectives.base import Metric

Costs = tuple[float, ...]


class FrontRace:
    """The trials of a trade-off between `metrics`, by what their runs say of each metric."""

    def __init__(self, metrics: tuple[Metric, ...], statistic: Statistic) -> None:
        """Start without trials; `statistic` makes one value of several runs."""
        self.metrics = metrics
        self._samples = [Samples(statistic) for _ in metrics]
        # Values are compared by ratio while all are positive, else relative to the first of them.
        self._scales: list[float | None] = [None for _ in metrics]
        self._trials: dict[int, TrialRecord] = {}
        self._costs: dict[int, Costs] = {}
        self._front: list[int] | None = None

    def follow(self, trials: Mapping[int, TrialRecord], keeps: Callable[[int], bool]) -> None:
        """Update the trials that are new or have changed; only trials that keep the limits compete."""
        for number, trial in trials.items():
            if self._trials.get(number) is not trial:
                self._trials[number] = trial
                self._front = None
                self._put(number)
        if self._front is None:
            self._front = _non_dominated({number: costs for number, costs in self._costs.items() if keeps(number)})

    def _put(self, number: int) -> None:
        runs = (
            [run for run in self._trials[number].runs if run.outcome.complete] if self._trials[number].complete else []
        )
        known = [run for run in runs if all(metric.name in run.outcome.metrics for metric in self.metrics)]
        for index, metric in enumerate(self.metrics):
            values = [(run.block, run.outcome.metrics[metric.name]) for run in known]
            if self._scales[index] is None and any(value <= 0.0 for _, value in values):
                self._scales[index] = max(abs(value) for _, value in values) or 1.0
                for other in [*self._costs]:
                    self._put(other)
            cost = self._cost_of(index)
            self._samples[index].put(number, [MeasuredRun(number, block, cost(value)) for block, value in values])
        self._costs.pop(number, None)
        if known:
            self._costs[number] = tuple(samples.center(number) for samples in self._samples)

    def _cost_of(self, index: int) -> Callable[[float], float]:
        metric, scale = self.metrics[index], self._scales[index]
        return lambda value: metric.cost(log(value) if scale is None else value / scale)

    @property
    def front(self) -> list[int]:
        """The trials that no other beats in all metrics, as their runs are now."""
        return self._front or []

    def rival(self, number: int, rules: RaceRules) -> int | None:
        """Return the trial of the front that is most likely to beat a trial; None if there is no other."""
        rivals = [other for other in self.front if other != number]
        return max(rivals, key=lambda other: self._chance(other, number, rules), default=None)

    def standing(self, number: int, rules: RaceRules) -> Standing:
        """Judge whether more runs could change whether a trial has a place on the front."""
        if number not in self._costs:
            return Standing.LOST
        count = self._samples[0].effects.count(number)
        if count < rules.max_runs <= len(self._trials[number].runs):
            # Some runs lack a metric, and more runs might too: those that have all metrics decide.
            rules = replace(rules, min_runs=1, max_runs=count)
        if count < rules.min_runs:
            return Standing.OPEN
        rival = self.rival(number, rules)
        chance = 0.0 if rival is None else self._chance(rival, number, rules)
        if chance > 1.0 - rules.error_rate:
            return Standing.LOST
        return Standing.WON if chance < rules.error_rate else Standing.OPEN

    def _chance(self, rival: int, number: int, rules: RaceRules) -> float:
        """Return the chance that a rival beats a trial after the full number of repeats."""
        chance = 1.0
        for samples in self._samples:
            chance *= 1.0 - chance_better(samples.effects, number, rival, rules)
            if chance < rules.error_rate:
                break
        return chance


def _non_dominated(costs: Mapping[int, Costs]) -> list[int]:
    """Return the trials that no other trial matches or beats in all metrics; of equal trials, the earlier."""
    front: list[tuple[Costs, int]] = []
    for own, number in sorted((own, number) for number, own in costs.items()):
        if not any(all(a <= b for a, b in zip(other, own, strict=True)) for other, _ in front):
            front.append((own, number))
    return [number for _, number in front]
