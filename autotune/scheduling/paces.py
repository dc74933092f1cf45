"""Paces: what a run of a trial is measured by on its way, and how far it has to be behind to have lost.

How far forecasts are off is learnt from the runs so far. A value may have a start of its own: the first run that has it
is not judged before the look that sees the pace after its start.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from autotune.execution.capping import USUAL
from autotune.records.outcome import Outcome
from autotune.records.study import TrialRecord
from autotune.statistics.pace import Pace
from autotune.statistics.pace_errors import Changes, Told, changes_of, factors, looks
from autotune.statistics.standings import Standings
from objectives.base import Metric
from spaces import Configuration, Space

# It is learnt from so many of the newest trials.
_NEWEST = 100
# Where so many trials agree in the steps that they take, the number does not depend on the configuration.
_AGREEING = 3
# The place of the look that takes no heed of the first fifth of a run: its pace is that of the fifth after it.
_STARTED = 2
# Of a parameter with more values than that, parts of its range take the place of values.
_VALUES = 6
_PARTS = 4

_Values = frozenset[tuple[int, int]]
"""Places of parameters, and of their values or parts of their ranges."""


@dataclass(frozen=True)
class Paces:
    """What is learnt of paces in a known `space`."""

    space: Space | None = None

    def of(self, trial: TrialRecord, rival: TrialRecord, standings: Standings, error_rate: float) -> Pace | None:
        """Return the pace of the rival; None where a step is no measure of work, or a pace says nothing of the metric.

        It is one where every run to its end took as many steps.
        """
        outcome = rival.told
        if outcome is None or not standings.metric.tells_early or standings.steps is None:
            return None
        # Two runs whose numbers of steps depend on their configurations may agree by chance.
        if len(standings.measured) < _AGREEING:
            return None
        pace = Pace(outcome.timeline, outcome.usage.elapsed_s, outcome.metrics[standings.metric.name])
        if self.space is None:
            return pace
        known = _changes(pace, list(standings.trials.values()))
        # The rival's run foretells its own end exactly, which tells nothing of others.
        others = [changes for number, changes in known.items() if number != rival.number]
        learnt = [_of_metric(factor, pace, standings.metric) for factor in factors(others, error_rate)]
        sure = _sure(trial, known, learnt, standings, self.space)
        return replace(pace, sure=tuple(zip((pace.timeline[0][0], *looks(pace)), sure, strict=True)))


def _of_metric(factor: float | None, pace: Pace, metric: Metric) -> float | None:
    """Return by what factor a metric is off that is of a part of a run, if its end is off by this one."""
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
    """Yield by what factor a run of a trial has to be behind before the first look, and at each."""
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
    """Return what forecasts changed by, of the newest run of each trial that tells most."""
    found: dict[int, Changes] = {}
    for trial in trials[-_NEWEST:]:
        runs = [_told(outcome) for outcome in trial.outcomes if outcome.failure is None and outcome.timeline]
        if runs:
            found[trial.number] = changes_of(pace, next((run for run in runs if run.end_s is not None), runs[-1]))
    return found


def _told(outcome: Outcome) -> Told:
    return Told(outcome.timeline, outcome.usage.elapsed_s if outcome.complete else None)


def _values_of(space: Space, configurations: Mapping[int, Configuration]) -> dict[int, _Values]:
    """Return the values of trials by number."""
    rows = space.indices(list(configurations.values()))
    sizes = [len(parameter.values) for parameter in space.parameters]
    return {
        number: frozenset(
            (place, int(index) if size <= _VALUES else int(index) * _PARTS // size)
            for place, (index, size) in enumerate(zip(row, sizes, strict=True))
        )
        for number, row in zip(configurations, rows, strict=True)
    }
