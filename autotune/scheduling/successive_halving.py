"""Successive halving: which segment comes next, so that most steps go to the trials that deserve them.

The counterpart of the scheduler of repeats: a trial is trained to its first rung, and goes on from its
checkpoint if it is among the best there. The default configuration is trained to the end first: it is the baseline.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from statistics import median

from autotune.execution.segments import Segment, best_until, curve_of
from autotune.records.study import ENDED, State, TrialRecord
from autotune.scheduling.hyperband import Bracket, Entry, Race, halving, planned
from autotune.scheduling.repeats import Step
from autotune.scheduling.training_scheduler import TrainingScheduler
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.studyfile import StoppingSection

# A rung tells something of the space when this number of trials has reached it.
_TELLING = 4


def extended(known: Sequence[Bracket], trials: int, rules: StoppingSection) -> tuple[Bracket, ...]:
    """Return a study's brackets for `trials` trials beside the default one; those that it has stay as they are."""
    missing = trials - sum(bracket.sizes[0] for bracket in known)
    if missing <= 0:
        return tuple(known)
    most, least, eta = rules.max_steps, rules.min_steps, rules.eta
    match rules.rule:
        case "hyperband":
            return (*known, *planned(missing, most, least, eta))
        case "asha":
            return (*known, halving(missing, most, least, eta))
        case _:
            return (*known, Bracket((missing,), (most,)))


@dataclass
class SuccessiveHalvingScheduler(TrainingScheduler):
    """What a session has to run, for a study whose trials work in steps. `brackets` are those of the whole study."""

    brackets: Sequence[Bracket]

    def _next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        return self._unstarted(standings, busy) or self._promoted(standings, busy, idle=False)

    def _idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        return self._promoted(standings, busy, idle=True)

    def _is_over(self, paused: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        for bracket, members in zip(self.brackets, self._members(standings), strict=True):
            if any(member.number == paused.number for member in members):
                return self._race(bracket, members, busy).is_over(self._entry(paused, bracket, busy))
        return True

    def _of_paused(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return that a paused trial is not better than the middle of those that went on.

        The values of different rungs cannot be compared. While few have gone on, theirs tell nothing yet, and the best
        of a paused trial counts as it is.
        """
        own = self._best(trial)
        complete = [other for other in standings.trials.values() if other.complete]
        values = [value for other in complete if (value := self._best(other)) is not None]
        if own is None or len(values) < _TELLING:
            return Observation(value=own, partial=True)
        middle = median(values)
        return Observation(bound=max(own, middle, key=self.metric.cost))

    def _unstarted(self, standings: Standings, busy: Collection[int]) -> Step | None:
        for race, members in zip(self.brackets, self._members(standings), strict=True):
            for trial in members:
                if not trial.runs and not trial.settled and self._may_run(trial, busy):
                    return Step(trial, segment=self._first_leg(race.steps[0], standings))
        return None

    def _promoted(self, standings: Standings, busy: Collection[int], *, idle: bool) -> Step | None:
        for race in self._races(standings, busy):
            entry = race.promoted(idle=idle)
            if entry is not None and self._may_run(standings.trials[entry.number], busy):
                return Step(standings.trials[entry.number], segment=self._leg(race.bracket.steps[entry.level]))
        return None

    def _first_leg(self, steps: int, standings: Standings) -> Segment:
        segment = self._leg(steps)
        return replace(segment, floors=self._floors(standings)) if self.rules.rule == "median" else segment

    def _floors(self, standings: Standings) -> Mapping[int, float]:
        """Return the median over other trials of the best value up to each step (Golovin et al., "Vizier", 2017)."""
        by_step: dict[int, list[float]] = {}
        for trial in standings.trials.values():
            best: float | None = None
            for step, value in curve_of(trial.runs[-1].outcome) if trial.runs else ():
                best = value if best is None else min(best, value, key=self.metric.cost)
                by_step.setdefault(step, []).append(best)
        judged = range(self.rules.min_steps, self.rules.max_steps)
        return {step: median(best) for step, best in by_step.items() if step in judged and len(best) >= _TELLING}

    def _members(self, standings: Standings) -> list[list[TrialRecord]]:
        """Return the trials of each bracket: in their order, but for the default one."""
        default = standings.default
        trials = [trial for _, trial in sorted(standings.trials.items()) if trial is not default]
        members, first = [], 0
        for bracket in self.brackets:
            members.append(trials[first : first + bracket.sizes[0]])
            first += bracket.sizes[0]
        return members

    def _races(self, standings: Standings, busy: Collection[int]) -> list[Race]:
        members = self._members(standings)
        return [self._race(bracket, trials, busy) for bracket, trials in zip(self.brackets, members, strict=True)]

    def _race(self, bracket: Bracket, members: Sequence[TrialRecord], busy: Collection[int]) -> Race:
        return Race(
            bracket,
            tuple(self._entry(trial, bracket, busy) for trial in members),
            self.rules.eta,
            full=self._no_more or len(members) == bracket.sizes[0],
            eager=self.rules.rule == "asha",
        )

    def _entry(self, trial: TrialRecord, bracket: Bracket, busy: Collection[int]) -> Entry:
        out = trial.state is State.FAILED or trial.settled or trial.number in self._left_alone
        reached = trial.runs[-1].steps if trial.runs and trial.runs[-1].outcome.complete else None
        if reached is None:
            return Entry(trial.number, busy=trial.number in busy, out=out)
        outcome = trial.runs[-1].outcome
        curve, ended = curve_of(outcome), ENDED in outcome.details
        rungs = [steps for steps in bracket.steps if ended or steps <= reached]
        best = (best_until(curve, steps, self.metric) for steps in rungs)
        values = tuple(inf if value is None else self.metric.cost(value) for value in best)
        passed = sum(steps < outcome.details[ENDED] for steps in bracket.steps) if ended else None
        return Entry(trial.number, values, trial.number in busy, out or ended, passed)
