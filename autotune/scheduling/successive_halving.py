"""The scheduler of trainings: which segment comes next, so that most steps go to the best trials.

A trial is trained to its first rung, and continues from its checkpoint if it is among the best there. So is the default
configuration at first, so that little is spent before others are tried. It is trained to its end, as the baseline, as
soon as another trial has been, or when nothing else is left. Studies of whole runs use the repeat scheduler instead.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median

from autotune.execution.capping import Cap
from autotune.execution.segments import Segment, best_so_far, best_until, curve_of
from autotune.records.study import ENDED, Purpose, State, TrialRecord
from autotune.scheduling.hyperband import Bracket, Entry, Race, halving_bracket, plan_brackets
from autotune.scheduling.repeats import Step, observation
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.readable_study import BRACKETS, ReadableStudy
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StoppingSection, StudyFile
from objectives.base import Metric

# Trials that must have reached a rung before their values are used.
_TELLING = 4


def extend_brackets(known: Sequence[Bracket], trials: int, rules: StoppingSection) -> tuple[Bracket, ...]:
    """Return a study's brackets for `trials` trials beside the default; the `known` ones stay as they are."""
    missing = trials - sum(bracket.sizes[0] for bracket in known)
    if missing <= 0:
        return tuple(known)
    most, least, eta = rules.max_steps, rules.min_steps, rules.eta
    match rules.rule:
        case "hyperband":
            return (*known, *plan_brackets(missing, most, least, eta))
        case "asha":
            return (*known, halving_bracket(missing, most, least, eta))
        case _:
            return (*known, Bracket((missing,), (most,)))


def extend_stored_brackets(store: StudyStore, study: StudyFile, rules: StoppingSection) -> tuple[Bracket, ...]:
    """Return the stored brackets of a study, extended to its present number of trials."""
    known = stored_brackets(store)
    brackets = extend_brackets(known, study.budget.most - 1, rules)
    if len(brackets) > len(known):
        tables = [{"sizes": list(bracket.sizes), "steps": list(bracket.steps)} for bracket in brackets]
        store.set_attribute(BRACKETS, {"brackets": tables})
    return brackets


def stored_brackets(store: ReadableStudy) -> tuple[Bracket, ...]:
    """Return the brackets that a study has so far; empty for a program that does not work in steps."""
    stored = store.attribute(BRACKETS) or {}
    return tuple(Bracket(tuple(bracket["sizes"]), tuple(bracket["steps"])) for bracket in stored.get("brackets", ()))


@dataclass
class SuccessiveHalvingScheduler:
    """Decides the runs of a study whose trials work in steps. `brackets` are those of the whole study."""

    rules: StoppingSection
    metric: Metric
    brackets: Sequence[Bracket]
    block: int = field(default=0, kw_only=True)
    together: bool = field(default=False, init=False)
    _left_alone: set[int] = field(default_factory=set, init=False)
    _no_more: bool = field(default=False, init=False)

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next segment; None if a new trial may start, or the runs in flight have to end first."""
        default = standings.default
        if default is not None and not self.is_ready(standings):
            first = self.brackets[0].steps[0] if self.brackets else self.rules.max_steps
            return None if default.number in busy else Step(default, segment=self._segment(first))
        return (
            self.rest_of_default(standings, busy)
            or self._first_run(standings, busy)
            or self._promotion(standings, busy, idle=False)
        )

    def next_when_idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return a segment for an idle worker when no new trial can start."""
        self._no_more = True
        return self._promotion(standings, busy, idle=True) or self._resume_default(standings, busy)

    def rest_of_default(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the rest of the default's training, once another trial is complete."""
        return self._resume_default(standings, busy) if standings.measured else None

    def _resume_default(self, standings: Standings, busy: Collection[int]) -> Step | None:
        default = standings.default
        if default is None or not standings.is_default_paused or not self._may_run(default, busy):
            return None
        return Step(default, segment=self._segment(self.rules.max_steps))

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        """Whether a trial will not be trained any further."""
        if not trial.runs or trial.state is not State.PAUSED:
            return bool(trial.runs)
        # A trial that the machine keeps failing is left to the next session.
        is_kept = trial is standings.default or trial.number in self._left_alone
        return not is_kept and self._is_over(trial, standings, busy)

    def observation(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what the sampler learns from a trial."""
        curve = best_so_far(curve_of(trial.runs[-1].outcome), self.metric) if trial.runs else ()
        if trial.state is State.PAUSED:
            return Observation(value=self._best(trial), partial=True, curve=curve)
        return replace(observation(trial, standings), curve=curve)

    def is_ready(self, standings: Standings) -> bool:
        """Whether the default configuration has been trained to its first rung."""
        default = standings.default
        return default is not None and (bool(default.runs) or default.number in self._left_alone)

    def deserving(self, standings: Standings) -> list[TrialRecord]:
        """Return an empty list: a settled trial is not run again."""
        del standings
        return []

    def start(self, step: Step, standings: Standings) -> None:
        """Do nothing: the start of a segment decides nothing."""

    def finish(self, purpose: Purpose, standings: Standings) -> None:
        """Do nothing: the standings hold all that decides the next segment."""

    def leave_alone(self, trial: TrialRecord) -> None:
        """Run a trial no more in this session, since the machine keeps failing it."""
        self._left_alone.add(trial.number)

    def cap(self, trial: TrialRecord, standings: Standings) -> Cap | None:
        """Return None: the quality of a model is not known before its step."""
        del trial, standings
        return None

    def _is_over(self, paused: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        for bracket, members in zip(self.brackets, self._members(standings), strict=True):
            if any(member.number == paused.number for member in members):
                return self._race(bracket, members, busy).is_over(self._entry(paused, bracket, busy))
        return True

    def _first_run(self, standings: Standings, busy: Collection[int]) -> Step | None:
        for race, members in zip(self.brackets, self._members(standings), strict=True):
            for trial in members:
                if not trial.runs and not trial.settled and self._may_run(trial, busy):
                    return Step(trial, segment=self._first_segment(race.steps[0], standings))
        return None

    def _promotion(self, standings: Standings, busy: Collection[int], *, idle: bool) -> Step | None:
        for race in self._races(standings, busy):
            entry = race.next_promotion(idle=idle)
            if entry is not None and self._may_run(standings.trials[entry.number], busy):
                return Step(standings.trials[entry.number], segment=self._segment(race.bracket.steps[entry.level]))
        return None

    def _first_segment(self, steps: int, standings: Standings) -> Segment:
        segment = self._segment(steps)
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
        """Return the trials of each bracket in their order, without the default."""
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

    def _best(self, trial: TrialRecord) -> float | None:
        return best_until(curve_of(trial.runs[-1].outcome), self.rules.max_steps, self.metric)

    def _may_run(self, trial: TrialRecord, busy: Collection[int]) -> bool:
        return trial.number not in busy and trial.number not in self._left_alone

    def _segment(self, steps: int) -> Segment:
        return Segment(steps, self.rules.max_steps, self.metric)
