"""Disturbances: which runs others have disturbed so much that they do not count, and how often those are made again."""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import Self

from autotune.coordination.neighbours import is_measured
from autotune.coordination.patience import Patience, quiet
from autotune.coordination.runs import RunInFlight
from autotune.errors import StudyFileError
from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.series import SeriesKind
from autotune.records.study import Purpose, Run
from autotune.statistics.sensitivity import ObservedRun, Sensitivity, sensitivity
from autotune.studyfile import NOISE_MODES, NoiseMode, NoiseSection
from objectives.base import Metric

NOISE = "AUTOTUNE_NOISE"

# So much is lost wherever another program starts; shorter losses say nothing.
_LEAST_LOST_S = 0.05
# A few runs are made again however few there are.
_FREE = 3


def noise_mode(section: NoiseSection) -> NoiseMode:
    """Return what is done about noise: as the study says, or else the environment.

    Raises:
        StudyFileError: the variable of the environment says something else.
    """
    if section.mode is not None:
        return section.mode
    text = os.environ.get(NOISE, "wait")
    for mode in NOISE_MODES:
        if text == mode:
            return mode
    msg = f"{NOISE} (what is done about disturbed runs) is {text!r}, it must be one of {', '.join(NOISE_MODES)}"
    raise StudyFileError(msg)


@dataclass
class Disturbances:
    """Judges the runs of a study by what others took from them; `line` says what a user should know.

    It `suspects` that the machine is busy at first, and after each run that was disturbed.

    Runs that were disturbed are set aside and made again, `again` for each that counts and a few more. After that they
    count in tuning, which only ranks; a comparison cannot go on. With `mode` accept all count, with refuse none is made
    again. When its `patience` is over, the session ends.
    """

    metric: Metric
    mode: NoiseMode = "accept"
    again: float = 0.5
    line: Callable[[str], None] = lambda _: None
    patience: Patience | None = None
    suspects: bool = field(default=True, init=False)
    _observed: list[ObservedRun] = field(default_factory=list, init=False)
    _counted: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0}, init=False)
    _aside: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0}, init=False)
    _spent: bool = field(default=False, init=False)

    @classmethod
    def of(
        cls, section: NoiseSection, metric: Metric, stored: Iterable[Run], line: Callable[[str], None], runs: int
    ) -> Self:
        """Return what judges the runs of a session, by those that are stored; about so many `runs` make the study.

        Raises:
            StudyFileError: the environment says what to do about noise, and it is no such thing.
        """
        mode = noise_mode(section)
        judge = cls(metric, mode, section.again, line, Patience(runs, section.times) if mode == "wait" else None)
        judge.know(stored)
        return judge

    def know(self, stored: Iterable[Run]) -> None:
        """Take note of the runs in storage."""
        for run in stored:
            self._observe(run, run.outcome)

    def judge(self, run: RunInFlight, outcome: Outcome) -> Outcome:
        """Return the outcome of a run that ended: an infrastructure error if it was disturbed and is made again."""
        disturbance = outcome.disturbance
        taken = disturbance.taken_share
        self._observe(run.purpose, outcome)
        if taken is None or self.mode == "accept" or not self.metric.is_pace or not is_measured(run, outcome):
            return outcome
        limit = self.sensitivity.threshold
        disturbed = _is_beyond(limit, outcome)
        self.suspects = self.suspects or disturbed
        tuning = not run.purpose.series.is_comparison
        elapsed_s = outcome.usage.elapsed_s
        if not disturbed or (tuning and self.mode != "refuse" and not self._within_budget(tuning=True)):
            self._counted[tuning] += 1
            if disturbed:
                self.lose(elapsed_s - quiet(elapsed_s, taken))
            if disturbed and not self._spent:
                self._spent = True
                self.line("others disturb this machine all the time: from here on, disturbed runs of trials count")
            return outcome
        self._aside[tuning] += 1
        self.lose(elapsed_s)
        message = (
            f"was disturbed: {disturbance.describe()}; from {limit:.1%} on that moves a value by more than the noise "
            "of this study, and this run does not count"
        )
        return outcome.set_aside(DISTURBED, message)

    def judge_together(self, ended: Sequence[tuple[RunInFlight, Outcome]]) -> list[tuple[RunInFlight, Outcome]]:
        """Return the outcomes of runs that were made side by side to be compared, all or none of which count.

        What others took from all alike does not count: only what they took from one beyond what they took from another.
        They are one block, and are counted as one. Beyond the budget they count: the sides swap their cores each time,
        so what others take from one half widens the interval, and favours nobody.
        """
        for run, outcome in ended:
            self._observe(run.purpose, outcome)
        shares = [outcome.disturbance.taken_share for _, outcome in ended]
        known = [share for share in shares if share is not None]
        measured = len(known) == len(ended) and all(is_measured(run, outcome) for run, outcome in ended)
        if self.mode == "accept" or not self.metric.is_pace or not measured:
            return list(ended)
        limit, apart = self.sensitivity.threshold, max(known) - min(known)
        longest_s = max(outcome.usage.elapsed_s for _, outcome in ended)
        even = apart <= limit or apart * longest_s <= _LEAST_LOST_S
        if even or (self.mode != "refuse" and not self._within_budget(tuning=False, more=1)):
            self._counted[False] += 1
            if not even and not self._spent:
                self._spent = True
                self.line("others take more from one half of the cores again and again: from here on, such pairs count")
            return list(ended)
        self._aside[False] += 1
        self.lose(longest_s)
        message = (
            f"was disturbed: others took {max(known):.0%} of the time of one of two runs side by side, and "
            f"{min(known):.0%} of the other's; where they differ by more than {limit:.1%}, that moves the ratio by "
            "more than the noise of this study, and the two do not count"
        )
        return [(run, outcome.set_aside(DISTURBED, message)) for run, outcome in ended]

    @property
    def patience_s(self) -> float:
        """How much more time the session may lose to others."""
        return self.patience.left_s if self.patience is not None else inf

    def lose(self, seconds: float) -> None:
        """Take note of time that others cost, by their use of the machine or by a wait."""
        if self.patience is not None:
            self.patience.lose(seconds)

    def check_patience(self) -> None:
        """Refuse to begin another run where others have cost too much time.

        Raises:
            CannotRunHereError: they have.
        """
        if self.patience is not None:
            self.patience.check()

    def is_disturbed(self, outcome: Outcome) -> bool:
        """Whether others can have moved the value of a run by more than the noise of this study."""
        return _is_beyond(self.sensitivity.threshold, outcome)

    def may_again(self, purpose: Purpose) -> bool:
        """Whether a run for this purpose that was disturbed is made again."""
        # Of tuning, what is beyond the budget counts, and is not asked for here.
        return self.mode != "refuse" and (not purpose.series.is_comparison or self._within_budget(tuning=False))

    @property
    def sensitivity(self) -> Sensitivity:
        """How much the runs so far were moved by others."""
        return sensitivity(self._observed)

    def _within_budget(self, *, tuning: bool, more: int = 0) -> bool:
        return self._aside[tuning] + more < _FREE + self.again * self._counted[tuning]

    def _observe(self, purpose: Purpose, outcome: Outcome) -> None:
        value, taken = outcome.measured.get(self.metric.name), outcome.disturbance.taken_share
        if value is None or value <= 0.0 or taken is None or purpose.steps is not None:
            return
        workload = purpose.series.before.of if purpose.series.before.kind is SeriesKind.WORKLOAD else ()
        if self.patience is not None:
            self.patience.ran(outcome.usage.elapsed_s, taken)
        configuration = (workload, frozenset(purpose.configuration.items()))
        self._observed.append(ObservedRun(configuration, self.metric.cost(log(value)), taken))


def _is_beyond(limit: float, outcome: Outcome) -> bool:
    taken = outcome.disturbance.taken_share
    return taken is not None and taken > limit and taken * outcome.usage.elapsed_s > _LEAST_LOST_S
