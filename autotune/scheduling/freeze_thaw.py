"""Freeze and thaw: which training goes on, or whether a new one begins, by what a step of each is worth.

Trials are trained in legs, from rung to rung, and freeze between them. What each will reach is foretold from all curves
(`learning_curves`), and the next leg goes where a step is worth most (`curve_outlook`): to a frozen trial, or to a new
one. When there are no more new trials, those are trained to the end that may still beat all others. After freeze-thaw
Bayesian optimisation (Swersky, Snoek & Adams, arXiv:1406.3896, 2014).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from autotune.execution.segments import best_until, curve_of
from autotune.records.study import ENDED, TrialRecord
from autotune.scheduling.curve_outlook import CurveOutlook, Frozen
from autotune.scheduling.repeats import Step
from autotune.scheduling.training_scheduler import TrainingScheduler
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from spaces import Space

# New trials begin until so many have been trained beside the default: before that little is known of curves.
_STARTUP = 5
# A trial with less chance than that to beat all others is not trained any further.
_CHANCE = 0.01


@dataclass
class FreezeThawScheduler(TrainingScheduler):
    """What a session has to run, for a study of `space` whose trials work in steps."""

    space: Space
    _known: tuple[object, CurveOutlook | None] | None = field(default=None, init=False)

    def _next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        for trial in standings.trials.values():
            if not trial.runs and not trial.settled and self._may_run(trial, busy):
                return Step(trial, segment=self._leg(self._rungs[0]))
        outlook = self._outlook(standings)
        if outlook is None:
            return None
        indexes = {number: told.index for number, told in outlook.trials.items()}
        return self._thawed(outlook, indexes, outlook.untried, standings, busy)

    def _idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        outlook = self._outlook(standings)
        if outlook is None:
            return None
        worth = {number: told.index for number, told in outlook.trials.items() if told.chance >= _CHANCE}
        return self._thawed(outlook, worth, 0.0, standings, busy)

    def _is_over(self, paused: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        del busy
        outlook = self._outlook(standings) if self._no_more else None
        told = outlook.trials.get(paused.number) if outlook is not None else None
        return outlook is not None and (told is None or told.chance < _CHANCE)

    def _of_paused(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what is foretold, as part of a run's worth."""
        outlook = self._outlook(standings)
        told = outlook.trials.get(trial.number) if outlook is not None else None
        if told is None:
            return Observation(value=self._best(trial), partial=True)
        return Observation(value=self.metric.cost(told.cost), runs=told.runs, partial=True)  # it is its own inverse

    def _thawed(
        self,
        outlook: CurveOutlook,
        indexes: Mapping[int, float],
        least: float,
        standings: Standings,
        busy: Collection[int],
    ) -> Step | None:
        """Return the next leg of the trial with the greatest index, if that is not below the `least`."""
        there = (standings.trials[number] for number, index in indexes.items() if index >= least)
        open_ = [trial for trial in there if not trial.settled and self._may_run(trial, busy)]
        best = max(open_, key=lambda trial: indexes[trial.number], default=None)
        return Step(best, segment=self._leg(outlook.after(best.runs[-1].steps or 0))) if best is not None else None

    @cached_property
    def _rungs(self) -> tuple[int, ...]:
        """The steps after which a trial freezes: from rung to rung a factor of eta."""
        rungs = [self.rules.max_steps]
        while rungs[-1] > self.rules.min_steps:
            rungs.append(max(self.rules.min_steps, rungs[-1] // self.rules.eta))
        return tuple(reversed(rungs))

    def _outlook(self, standings: Standings) -> CurveOutlook | None:
        reached = [(number, trial.runs[-1].steps if trial.runs else 0) for number, trial in standings.trials.items()]
        state = reached, self._no_more
        if self._known is None or self._known[0] != state:
            curves = [curve for trial in standings.trials.values() if (curve := self._curve(trial)) is not None]
            enough = len(curves) > (1 if self._no_more else _STARTUP)
            self._known = state, CurveOutlook(self.space, self._rungs, curves) if enough else None
        return self._known[1]

    def _curve(self, trial: TrialRecord) -> Frozen | None:
        if not trial.runs or not trial.runs[-1].outcome.complete:
            return None
        outcome, reached = trial.runs[-1].outcome, trial.runs[-1].steps or 0
        curve, ended = curve_of(outcome), ENDED in outcome.details
        if ended and curve:
            reached = min(reached, curve[-1][0])
        best = {step: best_until(curve, step, self.metric) for step in (*self._rungs, reached) if step <= reached}
        known = {step: self.metric.cost(value) for step, value in sorted(best.items()) if value is not None}
        over = ended or reached >= self.rules.max_steps
        return Frozen(trial.number, trial.configuration, tuple(known), tuple(known.values()), over) if known else None
