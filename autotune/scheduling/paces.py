"""Pace caps: stop a run whose steps come so slowly that its end is certain to lose against the incumbent.

The error of such forecasts is learnt from the runs so far. A parameter value may come with a slow start of its own, so
the first run that has a new value is judged only by its pace after the start.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from autotune.execution.capping import USUAL
from autotune.records.outcome import Outcome
from autotune.records.study import TrialRecord
from autotune.statistics.pace import Pace
from autotune.statistics.pace_errors import Changes, TimedRun, changes_of, factors, looks
from autotune.statistics.standings import Standings
from objectives.base import Metric
from spaces import Configuration, Space

# The newest trials, from which the error of forecasts is learnt.
_NEWEST = 100
# Trials that must agree in their number of steps before it counts as independent of the configuration.
_AGREEING = 3
# The first look whose pace leaves out the start, which is the first fifth of a run.
_STARTED = 2
# A parameter with more values than this is known by quarters of its range instead of single values.
_VALUES = 6
_PARTS = 4

_Values = frozenset[tuple[int, int]]
"""Pairs of a parameter's position and the position of its value, or of the quarter of its range."""


@dataclass(frozen=True)
class Paces:
    """The forecasts of run times by pace, in a `space`; without one, nothing is learnt from other trials."""

    space: Space | None = None

    def of(self, trial: TrialRecord, rival: TrialRecord, standings: Standings, error_rate: float) -> Pace | None:
        """Return the rival's pace, against which a run of `trial` is judged.

        None if the pace says nothing about the metric, or if steps do not measure work: complete runs must all have
        taken the same number of steps.
        """
        outcome = rival.last_with_steps
        if outcome is None or not standings.metric.can_be_forecast or standings.steps is None:
            return None
        # Two runs whose numbers of steps depend on their configurations may agree by chance.
        if len(standings.measured) < _AGREEING:
            return None
        pace = Pace(outcome.timeline, outcome.usage.elapsed_s, outcome.metrics[standings.metric.name])
        if self.space is None:
            return pace
        known = _changes(pace, list(standings.trials.values()))
        # The rival's run is left out: it predicts its own end exactly, and so has no error to learn from.
        others = [changes for number, changes in known.items() if number != rival.number]
        learnt = [_of_metric(factor, pace, standings.metric) for factor in factors(others, error_rate)]
        sure = _sure(trial, known, learnt, standings, self.space)
        return replace(pace, sure=tuple(zip((pace.timeline[0][0], *looks(pace)), sure, strict=True)))


def _of_metric(factor: float | None, pace: Pace, metric: Metric) -> float | None:
    """Return the factor by which a metric is off if the end of the run is off by `factor`: it may time only a part."""
    if factor is None:
        return None
    part_s = pace.elapsed_s - pace.timeline[0][1] if metric.kind == "rate" else pace.value
    return 1.0 + (factor - 1.0) * max(1.0, pace.elapsed_s / part_s)


def _sure(
    trial: TrialRecord,
    known: Mapping[int, Changes],
    learnt: Sequence[float | None],
    standings: Standings,
    space: Space,
) -> Iterator[float]:
    """Yield the factors by which a run of a trial must be behind to be stopped: before the first look, then at each."""
    went_on = [number for number, changes in known.items() if changes[_STARTED - 1] is not None]
    configurations = {number: standings.trials[number].configuration for number in went_on}
    having = _values_of(space, {**configurations, trial.number: trial.configuration})
    is_known = having[trial.number] <= _Values().union(*(having[number] for number in went_on))
    yield max(USUAL, learnt[0] or USUAL) if is_known else inf
    for place, factor in enumerate(learnt):
        if is_known:
            yield USUAL if factor is None else factor
        else:
            yield inf if place < _STARTED else max(USUAL, factor or USUAL)


def _changes(pace: Pace, trials: Sequence[TrialRecord]) -> Mapping[int, Changes]:
    """Return the changes of forecasts during one run of each of the newest trials: a complete run if there is one."""
    found: dict[int, Changes] = {}
    for trial in trials[-_NEWEST:]:
        runs = [_as_timed_run(outcome) for outcome in trial.outcomes if outcome.failure is None and outcome.timeline]
        if runs:
            found[trial.number] = changes_of(pace, next((run for run in runs if run.end_s is not None), runs[-1]))
    return found


def _as_timed_run(outcome: Outcome) -> TimedRun:
    return TimedRun(outcome.timeline, outcome.usage.elapsed_s if outcome.complete else None)


def _values_of(space: Space, configurations: Mapping[int, Configuration]) -> dict[int, _Values]:
    """Return the values (or quarters of ranges) that each trial has, by the trial's number."""
    rows = space.indices(list(configurations.values()))
    sizes = [len(parameter.values) for parameter in space.parameters]
    return {
        number: frozenset(
            (place, int(index) if size <= _VALUES else int(index) * _PARTS // size)
            for place, (index, size) in enumerate(zip(row, sizes, strict=True))
        )
        for number, row in zip(configurations, rows, strict=True)
    }
