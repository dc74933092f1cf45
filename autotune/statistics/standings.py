"""Standings: what all runs of a study say together: every trial's value, the baseline, the incumbent, the noise."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from math import exp, expm1, log, sqrt
from typing import TypeVar

from autotune.records.outcome import Outcome
from autotune.records.study import State, TrialRecord
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.mixed_model import MeasuredRun, MixedModel, Statistic, center
from autotune.statistics.samples import Samples
from autotune.statistics.slowdowns import Slowdowns, excess
from autotune.statistics.speed_up import OF_THE_DEFAULT, SpeedUp
from autotune.statistics.verdict import Verdict
from objectives.base import Metric

_Entry = TypeVar("_Entry", int, float, tuple[float, int])

# A single trial does not show that all runs have the same number of steps.
_LEAST_COMPLETE = 2
# The next run may be disturbed as much as the worst of the newest runs of this number of trials.
_LATELY = 8


class Standings:
    """A view of the trials as they are now. Each trial is evaluated once, when it changes.

    Trials are compared by the undisturbed values of their runs, less what others slowed them (`Slowdowns`): on a busy
    machine the measured values compare the neighbours. `value` and `bound_of` are as measured.
    """

    def __init__(
        self,
        trials: Mapping[int, TrialRecord],
        metric: Metric,
        statistic: Statistic = "median",
        verdict: Verdict | None = None,
        limits: KeptLimits | None = None,
    ) -> None:
        """Evaluate trials.

        Args:
            trials: The trials by number.
            metric: The target metric.
            statistic: How several runs of a trial make one value.
            verdict: The verdict on one of the trials, if there is one.
            limits: The limits that trials must keep.
        """
        self.limits = limits if limits is not None else KeptLimits()
        self.metric = metric
        self.statistic = statistic
        self.verdict = verdict
        self._trials: dict[int, TrialRecord] = {}
        self._first: int | None = None
        self._samples = Samples(statistic)
        self._slowdowns = Slowdowns(metric)
        # All of these are in ascending order: values (logarithms, lower is better) with the trials' numbers, ...
        self._complete: list[tuple[float, int]] = []
        self._keeping: list[tuple[float, int]] = []
        self._leading: list[tuple[float, int]] = []
        self._capped: list[tuple[float, int]] = []
        self._open: list[int] = []
        self._overheads_s: list[float] = []
        self._counts: Counter[str] = Counter()
        self._ends: Counter[int] = Counter()
        self._ran = 0
        self._spent_s = 0.0
        for trial in trials.values():
            self._put(trial)
        self._learn_slowdowns()

    @classmethod
    def of(
        cls,
        trials: Iterable[TrialRecord],
        metric: Metric,
        statistic: Statistic = "median",
        verdict: Verdict | None = None,
        limits: KeptLimits | None = None,
    ) -> "Standings":
        """Evaluate trials, in the order of their numbers."""
        return cls({trial.number: trial for trial in trials}, metric, statistic, verdict, limits)

    def update(self, trial: TrialRecord) -> None:
        """Update a trial that is new or has changed."""
        self._put(trial)
        self._learn_slowdowns()

    def _put(self, trial: TrialRecord) -> None:
        before = self._trials.get(trial.number)
        if before is not None:
            self._count(before, -1)
        elif self._first is None or trial.number < self._first:
            self._first = trial.number
        self._trials[trial.number] = trial
        self._slowdowns.put(trial.number, trial.outcomes)
        self._samples.put(trial.number, self._samples_of(trial))
        self.limits.put(trial)
        self._count(trial, 1)

    def _learn_slowdowns(self) -> None:
        """Evaluate the disturbed trials again if values suffer more or less from others than they were thought to."""
        effect = self._slowdowns.estimate()
        if effect == self._slowdowns.effect:
            return
        disturbed = [trial for trial in self._trials.values() if any(map(excess, trial.outcomes))]
        for trial in disturbed:
            self._count(trial, -1)
        self._slowdowns.effect = effect
        for trial in disturbed:
            self._samples.put(trial.number, self._samples_of(trial))
            self._count(trial, 1)

    def _count(self, trial: TrialRecord, by: int) -> None:
        """Add a trial to the counts (`by` 1), or remove it (`by` -1)."""
        number, change = trial.number, _add if by > 0 else _remove
        if trial.complete:
            entry = self._samples.center(number), number
            change(self._complete, entry)
            if self.limits.keeps(number):
                change(self._keeping, entry)
                if trial.settled:
                    change(self._leading, entry)
        elif trial.state is State.CAPPED:
            change(self._capped, (self._center(trial, undisturbed=True), number))
        if not trial.settled:
            change(self._open, number)
        else:
            self._spent_s += by * sum(outcome.usage.elapsed_s for outcome in trial.outcomes)
        self._ran += by * bool(trial.runs)
        kind = _kind(trial)
        if kind is not None:
            self._counts[kind] += by
        for outcome in trial.outcomes:
            if outcome.complete:
                change(self._overheads_s, outcome.usage.elapsed_s - outcome.metrics[self.metric.name])
                if outcome.timeline:
                    self._ends[outcome.timeline[-1][0]] += by

    def _samples_of(self, trial: TrialRecord) -> list[MeasuredRun]:
        """Return the runs that count for the value of a trial.

        A run that was capped before its trial got another run counts with its bound: leaving it out would keep only the
        lucky runs.
        """
        if not trial.complete:
            return []
        return [
            MeasuredRun(trial.number, run.block, self._log_of(run.outcome, undisturbed=True), run.host)
            for run in trial.runs
            if run.outcome.failure is None
        ]

    def _log_of(self, outcome: Outcome, *, undisturbed: bool) -> float:
        """Return the logarithm of a run's value or bound: as measured, or without what others took from it."""
        value = outcome.metrics[self.metric.name] if outcome.bound is None else outcome.bound
        return self.to_log(value) - (self._slowdowns.of(outcome) if undisturbed else 0.0)

    def _center(self, trial: TrialRecord, *, undisturbed: bool) -> float:
        outcomes = (outcome for outcome in trial.outcomes if outcome.failure is None)
        return center([self._log_of(outcome, undisturbed=undisturbed) for outcome in outcomes], self.statistic)

    @property
    def trials(self) -> Mapping[int, TrialRecord]:
        """The trials by number, in the order in which they were added."""
        return self._trials

    @property
    def effects(self) -> MixedModel:
        """The effects of configurations and blocks, from the runs of complete trials, by the trials' numbers."""
        return self._samples.effects

    @property
    def open(self) -> Sequence[int]:
        """The numbers of the trials that are not settled, in ascending order."""
        return self._open

    @property
    def default(self) -> TrialRecord | None:
        """The trial of the default configuration, which is proposed first.

        Not always number 0: a trial that was killed before its launch leaves its number unused.
        """
        return self._trials[self._first] if self._first is not None else None

    @property
    def baseline(self) -> TrialRecord | None:
        """The trial of the default configuration if it has a measurement."""
        default = self.default
        return default if default is not None and default.complete else None

    @property
    def is_default_paused(self) -> bool:
        """Whether the default configuration is a training that has not come to its end."""
        return self.default is not None and self.default.state is State.PAUSED

    @property
    def missing_baseline(self) -> str:
        """The reason why the default configuration has no measurement, as the end of a sentence."""
        return "is not trained to its end yet" if self.is_default_paused else "failed"

    @property
    def tuned_default(self) -> list[float]:
        """The values of the default configuration from tuning, of runs from which others took little.

        Those of disturbed runs are too uncertain to tell the pace of the machine.
        """
        outcomes = [] if self.baseline is None else self.baseline.outcomes
        name = self.metric.name
        return [one.metrics[name] for one in outcomes if name in one.metrics and not self._slowdowns.of(one)]

    @property
    def measured(self) -> list[TrialRecord]:
        """The complete trials, best first; of equal trials the earlier one first."""
        return [self._trials[number] for _, number in self._complete]

    @property
    def ranking(self) -> list[TrialRecord]:
        """The complete trials that keep the limits, best first; of equal trials the earlier one first."""
        return [self._trials[number] for _, number in self._keeping]

    @property
    def nearest(self) -> TrialRecord | None:
        """The complete trial that is least beyond the limits, all limits together; of equal trials the better one."""
        return min(self.measured, key=lambda trial: self._beyond(trial.number), default=None)

    def _beyond(self, number: int) -> float:
        return sum(breach.excess for breach in self.limits.breaches(number))

    @property
    def incumbent(self) -> TrialRecord | None:
        """The best trial that keeps the limits and has won its race; before any has, the best that keeps the limits."""
        best = self._leading or self._keeping
        return self._trials[best[0][1]] if best else None

    def trials_capped_below(self, logarithm: float) -> list[TrialRecord]:
        """Return the capped trials whose bound is better than a value, in the order of their numbers."""
        capped = self._capped[: bisect_left(self._capped, (logarithm, -1))]
        return [self._trials[number] for _, number in sorted(capped, key=lambda entry: entry[1])]

    def value(self, trial: TrialRecord) -> float:
        """Return the value of a complete trial: the statistic of its runs."""
        return self.from_log(self._center(trial, undisturbed=False))

    def bound_of(self, trial: TrialRecord) -> float:
        """Return the bound of a capped trial: its value is no better."""
        return self.from_log(self._center(trial, undisturbed=False))

    def undisturbed_value(self, trial: TrialRecord) -> float:
        """Return the value or the bound of a trial without what others took from its runs."""
        return self.from_log(self._center(trial, undisturbed=True))

    @property
    def recent_slowdown(self) -> float:
        """The largest slowdown by others among the newest runs of the last trials, as a logarithm."""
        newest = (trial.outcomes[-1] for trial in reversed(self._trials.values()) if trial.outcomes)
        return max(map(self._slowdowns.of, islice(newest, _LATELY)), default=0.0)

    def gain(self, trial: TrialRecord) -> float | None:
        """Estimate how many times better a complete trial is than the baseline; None without either.

        Under drift, runs are compared with the baseline's runs near in time.
        """
        reference = self.baseline
        if reference is None or not trial.complete:
            return None
        return exp(-self.effects.contrast(trial.number, reference.number).difference)

    def speed_up(self, trial: TrialRecord) -> SpeedUp | None:
        """Return how many times better a complete trial is than the baseline; None without either.

        The verdict on the trial gives it; before the verdict, the runs of tuning give an estimate.
        """
        gain, verdict = self.gain(trial), self.verdict
        if gain is None or trial is self.baseline:
            return None if gain is None else OF_THE_DEFAULT
        if verdict is not None and verdict.known and verdict.winner == trial.number:
            ratio, low, high = verdict.interval(self.metric)
            return SpeedUp(ratio, (low, high))
        return SpeedUp(gain)

    @property
    def noise(self) -> float:
        """The relative standard deviation of runs of the same configuration."""
        return exp(self.effects.noise) - 1.0

    @property
    def resolution(self) -> float:
        """The relative standard error of a comparison with the incumbent: smaller differences cannot be detected."""
        best, other = self.incumbent, self.baseline
        if best is None or not best.complete:
            return 0.0
        if other is None or other.number == best.number:
            return expm1(sqrt(2.0 * self.effects.variance(self.effects.count(best.number))))
        return expm1(self.effects.contrast(best.number, other.number).standard_error)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of trials that failed, by kind of failure, and of those that were capped."""
        return {kind: count for kind, count in self._counts.items() if count}

    @property
    def nothing_worked(self) -> int:
        """The number of trials that ran, if all of them failed; else 0."""
        failed = sum(self._counts.values()) - len(self._capped)
        return self._ran if failed == self._ran else 0

    @property
    def settled(self) -> int:
        """The number of settled trials."""
        return len(self._trials) - len(self._open)

    @property
    def spent_s(self) -> float:
        """The sum of the times of the settled trials' runs, in seconds."""
        return self._spent_s

    @property
    def overhead_s(self) -> float:
        """The median over complete runs of a job's time less the time that the target metric measures, in seconds."""
        count = len(self._overheads_s)
        if not count:
            return 0.0
        return max(0.0, (self._overheads_s[(count - 1) // 2] + self._overheads_s[count // 2]) / 2)

    @property
    def steps(self) -> int | None:
        """The number of steps of a whole run, if all complete runs agree; else None.

        None also with fewer than two complete trials.
        """
        ends = [steps for steps, count in self._ends.items() if count]
        return ends[0] if len(ends) == 1 and len(self._complete) >= _LEAST_COMPLETE else None

    def to_log(self, value: float) -> float:
        """Return a value of the target metric as a logarithm that is lower for a better one."""
        return self.metric.cost(log(value))

    def from_log(self, logarithm: float) -> float:
        """Return the value of a logarithm."""
        return exp(self.metric.cost(logarithm))


def _kind(trial: TrialRecord) -> str | None:
    if trial.state is State.CAPPED:
        return State.CAPPED.value
    return trial.failure.failure.value if trial.failure and trial.failure.failure else None


def _add(entries: list[_Entry], entry: _Entry) -> None:
    insort(entries, entry)


def _remove(entries: list[_Entry], entry: _Entry) -> None:
    del entries[bisect_left(entries, entry)]
