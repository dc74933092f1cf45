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
from autotune.scheduling.own_starts import values_of
from autotune.statistics.pace import LEAST, Pace
from autotune.statistics.pace_errors import Changes, Told, changes_of, factors, looks
from autotune.statistics.standings import Standings
from spaces import Space

# It is learnt from so many of the newest trials.
_NEWEST = 100
# Where so many trials agree in the steps that they take, the number does not depend on the configuration.
_AGREEING = 3
# The place of the look that takes no heed of the first fifth of a run: its pace is that of the fifth after it.
_STARTED = 2


@dataclass(frozen=True)
class Paces:
    """What is learnt of paces in a known `space`; a whole run that ends with `steps` has made all it was told to."""

    space: Space | None = None
    steps: int | None = None

    def of(self, trial: TrialRecord, rival: TrialRecord, standings: Standings, error_rate: float) -> Pace | None:
        """Return the pace of the rival; None where a step is no measure of work.

        It is one where every run to its end took as many steps, or as many as it was told to.
        """
        outcome = _yardstick(rival)
        if outcome is None or not self._measures(outcome, standings):
            return None
        pace = Pace(outcome.timeline, outcome.usage.elapsed_s, outcome.metrics[standings.metric.name])
        if self.space is None or not self._surely_measures(outcome, standings):
            return pace
        known = _changes(pace, list(standings.trials.values()))
        learnt = factors(list(known.values()), error_rate)
        sure = _sure(trial, known, learnt, standings, self.space)
        return replace(pace, sure=tuple(zip(looks(pace), sure, strict=True)))

    def judge(self, trial: TrialRecord, standings: Standings) -> bool:
        """Whether other runs can be judged by the steps that a run of `trial` has told."""
        outcome = _yardstick(trial)
        return outcome is not None and len(outcome.timeline) >= LEAST and self._measures(outcome, standings)

    def _surely_measures(self, outcome: Outcome, standings: Standings) -> bool:
        # Two runs whose numbers of steps depend on their configurations may agree by chance.
        return len(standings.measured) >= _AGREEING or outcome.timeline[-1][0] == self.steps

    def _measures(self, outcome: Outcome, standings: Standings) -> bool:
        if standings.steps is not None:
            return True
        return len(standings.measured) == 1 and outcome.timeline[-1][0] == self.steps


def _yardstick(trial: TrialRecord) -> Outcome | None:
    return next((outcome for outcome in reversed(trial.outcomes) if outcome.complete and outcome.timeline), None)


def _sure(
    trial: TrialRecord,
    known: Mapping[int, Changes],
    learnt: Sequence[float | None],
    standings: Standings,
    space: Space,
) -> Iterator[float]:
    """Yield by what factor a run of a trial has to be behind at each look."""
    went_on = [number for number, changes in known.items() if changes[_STARTED - 1] is not None]
    configurations = {number: standings.trials[number].configuration for number in went_on}
    having = values_of(space, {**configurations, trial.number: trial.configuration})
    is_known = having[trial.number] <= frozenset[tuple[int, int]]().union(*(having[number] for number in went_on))
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
