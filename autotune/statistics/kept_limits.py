"""Kept limits: which trials keep the limits of a study, and how certain that is.

A trial is judged by the statistic of its runs, like its value. Once a comparison has run it again, only those fresh
runs count: a trial that was chosen among many because it seemed to keep the limits looks better than it is.
"""

from collections.abc import Iterable, Sequence
from math import inf

from autotune.records.limit import PEAK_MEMORY, Breach, Limit, Limits, metrics_of_run
from autotune.records.series import SeriesKind
from autotune.records.study import Run, TrialRecord
from autotune.statistics.mixed_model import MeasuredRun, MixedModel, Statistic, center
from autotune.statistics.racing import RaceRules, Standing, still_open
from autotune.statistics.samples import Samples

_FRESH = frozenset({SeriesKind.SELECT, SeriesKind.VERDICT, SeriesKind.DUET})
# With fewer fresh runs than this, the runs of tuning count as well.
_LEAST_FRESH = 3


class KeptLimits:
    """How trials stand against limits; without any, all trials keep them."""

    def __init__(self, limits: Limits = (), statistic: Statistic = "median", runs: Iterable[Run] = ()) -> None:
        """Start without trials, which `put` adds; `runs` are all runs of the study, also those of comparisons."""
        self.limits = limits
        self._statistic: Statistic = statistic
        self._samples = [Samples(statistic) for _ in limits]
        self._values: dict[int, tuple[float | None, ...]] = {}
        self._made: dict[int, float] = {}
        self._fresh: dict[int, list[Run]] = {}
        for run in runs if limits else ():
            if run.series.kind in _FRESH and run.trial is not None and run.outcome.complete:
                self._fresh.setdefault(run.trial, []).append(run)

    def put(self, trial: TrialRecord) -> None:
        """Update a trial that is new or has changed."""
        if not self.limits:
            return
        fresh = self._fresh.get(trial.number, [])
        runs = fresh if len(fresh) >= _LEAST_FRESH else [*trial.runs, *fresh]
        # Where fresh runs decide, further runs of tuning change nothing; and some runs may lack a metric.
        self._made[trial.number] = inf if runs is fresh else len(trial.runs)
        self._values.pop(trial.number, None)
        if trial.complete:
            self._values[trial.number] = self._of(runs)
        for limit, samples in zip(self.limits, self._samples, strict=True):
            known = _values_of_limit(limit, runs) if trial.complete else []
            # Relative to the limit, since the noise of runs is estimated relatively.
            samples.put(trial.number, [MeasuredRun(trial.number, block, value / limit.scale) for block, value in known])

    def _of(self, runs: Sequence[Run]) -> tuple[float | None, ...]:
        known = ([value for _, value in _values_of_limit(limit, runs)] for limit in self.limits)
        return tuple(center(values, self._statistic) if values else None for values in known)

    def values(self, number: int) -> tuple[float | None, ...]:
        """Return a complete trial's value of each limited metric, in its unit; None for a metric without a value.

        For a trial that is not complete, every value is None.
        """
        return self._values.get(number, ())

    @property
    def memory_bytes(self) -> int | None:
        """How much memory a run may use; None without a limit on it."""
        ends = [limit.high for limit in self.limits if limit.metric == PEAK_MEMORY and limit.high != inf]
        return int(min(ends)) if ends else None

    def known(self, trial: TrialRecord) -> tuple[float | None, ...]:
        """Return the known value of each limited metric, as `values`; for a failed trial, the memory that was too much.

        A run that is stopped at the limit, or dies later, would have used at least as much.
        """
        if trial.complete or not trial.runs:
            return self.values(trial.number)
        used = float(trial.runs[-1].outcome.usage.peak_memory_bytes)
        return tuple(used if limit.metric == PEAK_MEMORY and used > limit.high else None for limit in self.limits)

    def breaches(self, number: int) -> tuple[Breach, ...]:
        """Return the limits that a complete trial breaks; empty for other trials, of which nothing is known."""
        return self._breaches(self.values(number))

    def breaches_in(self, runs: Iterable[Run]) -> tuple[Breach, ...]:
        """Return the limits that the complete ones of a configuration's runs break; empty if none is complete."""
        complete = [run for run in runs if run.outcome.complete]
        return self._breaches(self._of(complete)) if complete else ()

    def _breaches(self, values: Sequence[float | None]) -> tuple[Breach, ...]:
        pairs = zip(self.limits, values, strict=False)
        return tuple(Breach(limit, value) for limit, value in pairs if value is None or not limit.allows(value))

    def keeps(self, number: int) -> bool:
        """Whether a trial keeps all limits, as far as is known."""
        return not self.breaches(number)

    def standing(self, number: int, rules: RaceRules) -> Standing:
        """Judge whether more runs could change whether a trial keeps all limits.

        As in a race, the chance that they are kept after the full number of runs is predicted.
        """
        if self._made.get(number, 0) >= rules.max_runs:
            return Standing.WON if self.keeps(number) else Standing.LOST
        known = zip(self.limits, self._samples, self.values(number), strict=False)
        standings = [_standing(limit, samples.effects, number, value, rules) for limit, samples, value in known]
        if Standing.LOST in standings:
            return Standing.LOST
        return Standing.OPEN if Standing.OPEN in standings else Standing.WON


def _values_of_limit(limit: Limit, runs: Iterable[Run]) -> list[tuple[int, float]]:
    """Return the values of a limited metric, each with the block of its run."""
    name = limit.metric.name
    values = ((run.block, metrics_of_run(run.outcome).get(name)) for run in runs)
    return [(block, value) for block, value in values if value is not None]


def _standing(limit: Limit, effects: MixedModel, number: int, value: float | None, rules: RaceRules) -> Standing:
    if value is None:
        return Standing.LOST
    runs = effects.count(number)
    spread = still_open(effects, effects.variance(runs), rules.max_runs)
    if runs >= rules.max_runs or spread == 0.0:
        return Standing.WON if limit.allows(value) else Standing.LOST
    from scipy.special import stdtr  # noqa: PLC0415  slow to import, and reading a study needs none of it

    below, above = (
        float(stdtr(effects.degrees, (end - value) / limit.scale / spread)) if abs(end) != inf else float(end > 0.0)
        for end in (limit.low, limit.high)
    )
    if above - below < rules.error_rate:
        return Standing.LOST
    return Standing.WON if above - below > 1.0 - rules.error_rate else Standing.OPEN
