"""What all schedulers of trainings have in common: the default is trained to the end first, and nothing runs twice."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import ClassVar

from autotune.execution.capping import Cap
from autotune.execution.segments import Segment, best_until, curve_of
from autotune.records.study import Purpose, State, TrialRecord
from autotune.scheduling.repeats import Step, observation
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.studyfile import StoppingSection
from objectives.base import Metric


@dataclass
class TrainingScheduler:
    """What a session has to run, for a study whose trials work in steps, which `rules` bound."""

    rules: StoppingSection
    metric: Metric
    block: int = field(default=0, kw_only=True)
    apart: ClassVar[bool] = False
    """What a paused trial tells depends on the others."""
    _left_alone: set[int] = field(default_factory=set, init=False)
    _no_more: bool = field(default=False, init=False)

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next segment; None when a new trial may start, or the running ones have to end first."""
        default = standings.default
        if default is not None and not self.ready(standings):
            return None if default.number in busy else Step(default, segment=self._leg(self.rules.max_steps))
        return self._next(standings, busy)

    def idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return a segment for a worker that has nothing else to do: no new trial can start."""
        self._no_more = True
        return self._idle(standings, busy)

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        """Whether a trial will not be trained any further."""
        if not trial.runs or trial.state is not State.PAUSED or trial is standings.default:
            return bool(trial.runs)
        # What the machine fails is for the next session.
        return trial.number not in self._left_alone and self._is_over(trial, standings, busy)

    def observation(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what a trial tells the sampler."""
        return self._of_paused(trial, standings) if trial.state is State.PAUSED else observation(trial, standings)

    def _is_over(self, paused: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        raise NotImplementedError

    def _of_paused(self, trial: TrialRecord, standings: Standings) -> Observation:
        raise NotImplementedError

    def _next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        raise NotImplementedError

    def _idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        raise NotImplementedError

    def ready(self, standings: Standings) -> bool:
        """Whether the default configuration has been trained."""
        default = standings.default
        return default is not None and (bool(default.runs) or default.number in self._left_alone)

    def deserving(self, standings: Standings) -> list[TrialRecord]:
        """Return nothing: a settled trial is not run again."""
        del standings
        return []

    def starts(self, step: Step, standings: Standings) -> None:
        """Take note of a segment that starts."""

    def ended(self, purpose: Purpose, standings: Standings) -> None:
        """Take note of a segment that ended."""

    def leave_alone(self, trial: TrialRecord) -> None:
        """Run a trial no more in this session: the machine fails it."""
        self._left_alone.add(trial.number)

    def cap(self, trial: TrialRecord, standings: Standings) -> Cap | None:
        """Return nothing: the quality of a model says nothing before its step."""
        del trial, standings
        return None

    def _best(self, trial: TrialRecord) -> float | None:
        return best_until(curve_of(trial.runs[-1].outcome), self.rules.max_steps, self.metric)

    def _may_run(self, trial: TrialRecord, busy: Collection[int]) -> bool:
        return trial.number not in busy and trial.number not in self._left_alone

    def _leg(self, steps: int) -> Segment:
        return Segment(steps, self.rules.max_steps, self.metric)
