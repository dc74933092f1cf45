"""Standings: what all runs of a study say together: every trial's value, the baseline, the incumbent, the noise."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import exp, expm1, log, sqrt
from statistics import median

from autotune.effects import Effects, Sample, Statistic, center, fit
from autotune.outcome import Outcome
from autotune.records import State, TrialRecord, default_trial, speed_up
from objectives.base import Metric


@dataclass(frozen=True)
class Standings:
    """A view of the trials at one moment; make a new one when a run has ended."""

    trials: Mapping[int, TrialRecord]
    metric: Metric
    statistic: Statistic = "median"

    @classmethod
    def of(cls, trials: Iterable[TrialRecord], metric: Metric, statistic: Statistic = "median") -> "Standings":
        """Take stock of trials."""
        return cls({trial.number: trial for trial in trials}, metric, statistic)

    @cached_property
    def effects(self) -> Effects:
        """The effects of configurations and blocks, from the runs of complete trials, by the trials' numbers.

        A run that was capped before its trial was given another chance counts with its bound: leaving it out would
        leave the lucky runs.
        """
        samples = [
            Sample(trial.number, run.block, self.to_log(self._known(run.outcome)))
            for trial in self.trials.values()
            if trial.complete
            for run in trial.runs
            if run.outcome.failure is None
        ]
        return fit(samples, self.statistic)

    def _known(self, outcome: Outcome) -> float:
        return outcome.metrics[self.metric.name] if outcome.bound is None else outcome.bound

    @cached_property
    def default(self) -> TrialRecord | None:
        """The trial of the default configuration."""
        return default_trial(self.trials.values())

    @property
    def baseline(self) -> TrialRecord | None:
        """The trial of the default configuration if it gave a measurement."""
        return self.default if self.default is not None and self.default.complete else None

    @cached_property
    def ranking(self) -> list[TrialRecord]:
        """The complete trials, best first; of equals the earlier one."""
        complete = [trial for trial in self.trials.values() if trial.complete]
        return sorted(complete, key=lambda trial: (self.effects.center(trial.number), trial.number))

    @cached_property
    def incumbent(self) -> TrialRecord | None:
        """The best complete trial whose race is over; while there is none, the best complete one."""
        return next((trial for trial in self.ranking if trial.settled), next(iter(self.ranking), None))

    def value(self, trial: TrialRecord) -> float:
        """Return the value of a complete trial: the statistic of its runs."""
        return self.from_log(self.effects.center(trial.number))

    def bound(self, trial: TrialRecord) -> float:
        """Return what the value of a capped trial is not better than."""
        values = [self.to_log(self._known(outcome)) for outcome in trial.outcomes if outcome.failure is None]
        return self.from_log(center(values, self.statistic))

    def gain(self, trial: TrialRecord) -> float | None:
        """Return how many times better a complete trial is than the baseline; None without either."""
        reference = self.baseline
        if reference is None or not trial.complete:
            return None
        return speed_up(self.value(trial), self.value(reference), self.metric)

    @cached_property
    def noise(self) -> float:
        """The relative standard deviation of runs of the same configuration."""
        return exp(self.effects.noise) - 1.0

    @cached_property
    def resolution(self) -> float:
        """The relative standard error of a comparison with the incumbent: less cannot be told from nothing."""
        best, other = self.incumbent, self.baseline
        if best is None or not best.complete:
            return 0.0
        if other is None or other.number == best.number:
            return expm1(sqrt(2.0 * self.effects.variance(self.effects.count(best.number))))
        return expm1(self.effects.contrast(best.number, other.number).standard_error)

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many trials failed, by kind, or were capped."""
        found: dict[str, int] = {}
        for trial in self.trials.values():
            kind = trial.failure.failure.value if trial.failure and trial.failure.failure else None
            if trial.state is State.CAPPED:
                kind = State.CAPPED.value
            if kind is not None:
                found[kind] = found.get(kind, 0) + 1
        return found

    @cached_property
    def overhead_s(self) -> float:
        """What a job takes beside the time that the target metric measures: the median over complete runs."""
        differences = [
            outcome.usage.elapsed_s - outcome.metrics[self.metric.name]
            for trial in self.trials.values()
            for outcome in trial.outcomes
            if outcome.complete
        ]
        return max(0.0, median(differences)) if differences else 0.0

    def to_log(self, value: float) -> float:
        """Return a value of the target metric as a logarithm that is lower for a better one."""
        return self.metric.cost(log(value))

    def from_log(self, logarithm: float) -> float:
        """Return the value of a logarithm."""
        return exp(self.metric.cost(logarithm))
