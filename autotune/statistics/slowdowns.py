"""Slowdowns: how much worse the value of a run is because of others on the machine.

The share of its time that others took from a run is measured. The effect on values differs: the time of a run suffers
as a thread does, or more where ranks wait for each other, and the time of a kernel on a GPU not at all. So it is learnt
from the repeated runs of the study (`sensitivity`).
"""

from collections.abc import Hashable, Iterable
from math import exp, log
from typing import Self

from autotune.records.outcome import Outcome
from autotune.statistics.sensitivity import ObservedRun, Sensitivity, sensitivity
from launchers.noise.disturbance import NOTABLE_SHARE, Disturbance
from objectives.base import Metric

_NOTABLE = Disturbance(taken_share=NOTABLE_SHARE).slowdown


class Slowdowns:
    """The slowdowns of runs by others.

    Attributes:
        effect: How strongly values suffer, as a power of the slowdown of a thread. `Standings` sets it, since every
            value that was computed with it changes, too.
        error: Its standard error, if it was learnt.
    """

    def __init__(self, metric: Metric) -> None:
        """Start without runs.

        Before anything was repeated under load, times and rates of a run (by the kind of the metric) are expected to
        suffer as a thread does, and other figures not at all.
        """
        self._metric = metric
        self._prior = 1.0 if metric.is_pace and metric.kind != "other" else 0.0
        self._repeated: dict[Hashable, list[ObservedRun]] = {}
        self.effect = self._prior
        self.error = 0.0

    def put(self, configuration: Hashable, outcomes: Iterable[Outcome]) -> None:
        """Replace the runs of a configuration."""
        self._repeated.pop(configuration, None)
        values = ((outcome, outcome.measured.get(self._metric.name)) for outcome in outcomes)
        observed = [
            ObservedRun(configuration, self._metric.cost(log(value)), outcome.disturbance.taken_share)
            for outcome, value in values
            if value is not None and value > 0.0 and outcome.disturbance.taken_share is not None
        ]
        if len(observed) > 1:
            self._repeated[configuration] = observed

    @classmethod
    def learnt(cls, metric: Metric, runs: Iterable[Iterable[Outcome]]) -> Self:
        """Return the slowdowns with the effect that `runs` speak for, given those of each configuration.

        If others took little from every run, there is no effect.
        """
        slowdowns = cls(metric)
        for configuration, outcomes in enumerate(runs):
            slowdowns.put(configuration, outcomes)
        seen = slowdowns._seen()
        slowdowns.effect, slowdowns.error = (_rounded(seen), seen.error) if seen else (0.0, 0.0)
        return slowdowns

    def estimate(self) -> float:
        """Return the effect that the runs so far speak for, to a tenth."""
        seen = self._seen()
        return _rounded(seen) if seen else self._prior

    def _seen(self) -> Sensitivity | None:
        """Return what the repeated runs tell; None for a quality, or if others took little from each of them."""
        runs = [run for repeated in self._repeated.values() for run in repeated]
        if not self._metric.is_pace or all(run.taken <= NOTABLE_SHARE for run in runs):
            return None
        return sensitivity(runs, self._prior)

    def of(self, outcome: Outcome) -> float:
        """Return the logarithm of how many times worse a run's value is because of others."""
        return self.effect * excess(outcome)

    def undisturbed(self, value: float, outcome: Outcome) -> float:
        """Return a value of a run without what others took from it."""
        return value * exp(-self._metric.cost(self.effect * outcome.disturbance.slowdown))


def _rounded(seen: Sensitivity) -> float:
    return max(0.0, round(seen.effect, 1))


def excess(outcome: Outcome) -> float:
    """Return the logarithm of how many times longer a thread took because of others; 0 below a notable share."""
    return max(0.0, outcome.disturbance.slowdown - _NOTABLE)
