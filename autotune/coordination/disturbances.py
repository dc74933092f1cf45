"""Decide which runs were disturbed so much by other processes that they do not count, and how often they run again.

A study always ends: on a machine that is never quiet, disturbed runs count once the repeats or the time that may be
lost are used up, and the verdict says what others took.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log
from statistics import median
from typing import Any, Self

from autotune.coordination.neighbours import NEVER_QUIET, is_measured
from autotune.coordination.quiet_machine import QuietMachine
from autotune.coordination.runs import RunInFlight
from autotune.display.console import Display
from autotune.errors import CannotRunHereError, StudyFileError
from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.series import SeriesKind
from autotune.records.study import Purpose, Run
from autotune.statistics.sensitivity import ObservedRun, Sensitivity, sensitivity
from autotune.studyfile import NOISE_MODES, NoiseMode, NoiseSection, StudyFile
from launchers.mpi import spinning_ranks
from launchers.noise.disturbance import NOTABLE_SHARE
from objectives.base import FailureKind, Metric

NOISE = "AUTOTUNE_NOISE"

# Seconds lost to other processes. Any program that starts causes shorter losses, so these are ignored.
_LEAST_LOST_S = 0.05
# At least this many seconds may be lost, even in a short study.
_LEAST_PATIENCE_S = 10.0
# This many disturbed runs are repeated, however few runs count.
_FREE = 3
# A machine is busy if others disturbed at least half of the last runs, up to this number.
_LATELY = 8
_LEAST_LATELY = 4


def noise_mode(section: NoiseSection) -> NoiseMode:
    """Return the noise mode of the study file, or else that of the environment.

    Raises:
        StudyFileError: The environment variable names no mode.
    """
    if section.mode is not None:
        return section.mode
    text = os.environ.get(NOISE, "wait")
    for mode in NOISE_MODES:
        if text == mode:
            return mode
    msg = f"{NOISE} (what is done about disturbed runs) is {text!r}, it must be one of {', '.join(NOISE_MODES)}"
    raise StudyFileError(msg)


def expected_runs(study: StudyFile) -> int:
    """Return how many runs a study needs on a quiet machine: one for each trial, and a short verdict."""
    verdict = study.verdict
    return study.budget.most + verdict.rounds * verdict.candidates + 2 * verdict.pairs


@dataclass
class Patience:
    """The time that a session may lose to other processes; then disturbed runs count.

    Lost time is what they took from runs, the time of runs that do not count, and waiting. The study as a whole may
    take `times` as long as on a quiet machine, or ten seconds longer.

    Attributes:
        runs: Number of runs that the study needs on a quiet machine.
        times: Factor by which the session may take longer.
        lost_s: Seconds lost so far.
    """

    runs: int
    times: float
    lost_s: float = field(default=0.0, init=False)
    _quiet_s: list[float] = field(default_factory=list, init=False)

    def ran(self, elapsed_s: float, taken: float) -> None:
        """Record how long a run took, and the share of its time that other processes took."""
        self._quiet_s.append(undisturbed_s(elapsed_s, taken))

    def lose(self, seconds: float) -> None:
        """Add seconds that were lost."""
        self.lost_s += seconds

    @property
    def left_s(self) -> float:
        """Seconds that may still be lost."""
        whole_s = self.runs * median(self._quiet_s) if self._quiet_s else 0.0
        return max((self.times - 1.0) * whole_s, _LEAST_PATIENCE_S) - self.lost_s


def undisturbed_s(elapsed_s: float, taken: float) -> float:
    """Return how long a run would have taken without the share `taken` by others; its ranks may have lost more."""
    return elapsed_s * (1.0 - taken)


@dataclass
class Disturbances:
    """Judges the runs of a study by the CPU time that other processes took from them.

    A disturbed run is set aside and repeated, within a budget of runs and of lost time; tuning and comparisons have a
    budget of runs each. Once it is spent, the machine counts as one that is never quiet: disturbed runs count, and
    comparisons do not wait. In the mode "accept" all runs count, and in "refuse" none is repeated.

    Attributes:
        metric: The target of the study.
        mode: What to do about disturbed runs.
        again: How many runs are repeated for each run that counts, beyond a few that always are.
        line: Shows a message to the user.
        patience: The time that may be lost to other processes; when it is used up, disturbed runs count.
        suspects: Whether the machine may be busy: after each disturbed run, and before any if they are refused.
    """

    metric: Metric
    mode: NoiseMode = "accept"
    again: float = 0.5
    line: Callable[[str], None] = lambda _: None
    patience: Patience | None = None
    suspects: bool = field(init=False)
    _observed: list[ObservedRun] = field(default_factory=list, init=False)
    _counted: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0}, init=False)
    _aside: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0}, init=False)
    _never_quiet: dict[bool, bool] = field(default_factory=lambda: {True: False, False: False}, init=False)
    _offered: bool = field(default=False, init=False)
    _lately: deque[bool] = field(default_factory=lambda: deque(maxlen=_LATELY), init=False)

    def __post_init__(self) -> None:
        """Start without a disturbed run."""
        self.suspects = self.mode == "refuse"

    @classmethod
    def of(
        cls, section: NoiseSection, metric: Metric, stored: Iterable[Run], line: Callable[[str], None], runs: int
    ) -> Self:
        """Return the judge of a session's runs, knowing the `stored` ones; `runs` is how many the study needs on a
        quiet machine.

        Load cannot change a loss, an accuracy or a size, so runs that measure one always count.

        Raises:
            StudyFileError: The environment variable names no noise mode.
        """
        mode = noise_mode(section) if metric.is_pace else "accept"
        judge = cls(metric, mode, section.again, line, Patience(runs, section.times) if mode == "wait" else None)
        judge.add(stored)
        return judge

    def add(self, stored: Iterable[Run]) -> None:
        """Learn from the runs in storage."""
        for run in stored:
            self._observe(run, run.outcome)

    def judge(self, run: RunInFlight, outcome: Outcome) -> Outcome:
        """Return the outcome of a run that ended, as an infrastructure error if it was disturbed and is repeated."""
        disturbance = outcome.disturbance
        taken = disturbance.taken_share
        outcome = _explain_timeout(run, outcome)
        self._observe(run.purpose, outcome)
        if taken is None or not self.metric.is_pace or not is_measured(run, outcome):
            return outcome
        limit = self.sensitivity.threshold
        disturbed = _is_beyond(limit, outcome)
        if disturbed:
            self._offer_yielding(run.job)
        self._lately.append(disturbed)
        if self.mode == "accept":
            return outcome
        self.suspects = self.suspects or disturbed
        tuning = not run.purpose.series.is_comparison
        elapsed_s = outcome.usage.elapsed_s
        if not disturbed or not self._repeats(tuning=tuning):
            self._counted[tuning] += 1
            if disturbed:
                self.lose(elapsed_s - undisturbed_s(elapsed_s, taken))
            return outcome
        self._aside[tuning] += 1
        self.lose(elapsed_s)
        message = f"was disturbed: {disturbance.describe()}; the noise of this study allows {limit:.1%}"
        return outcome.set_aside(DISTURBED, message)

    def judge_together(self, ended: Sequence[tuple[RunInFlight, Outcome]]) -> list[tuple[RunInFlight, Outcome]]:
        """Return the outcomes of runs side by side: either all of them count, or all are set aside.

        Only the difference in what other processes took from the runs matters, since the runs are compared. They are
        one block, and count as one. Beyond the budget they count: the sides swap their cores each time, so an uneven
        load widens the interval but favours no side.
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
        if even or not self._repeats(tuning=False):
            self._counted[False] += 1
            return list(ended)
        self._aside[False] += 1
        self.lose(longest_s)
        message = (
            f"was disturbed: others took {max(known):.0%} of the time of one of two runs side by side and "
            f"{min(known):.0%} of the other's; the noise of this study allows a difference of {limit:.1%}"
        )
        return [(run, outcome.set_aside(DISTURBED, message)) for run, outcome in ended]

    @property
    def patience_s(self) -> float:
        """Seconds that the session may still lose to other processes."""
        return self.patience.left_s if self.patience is not None else inf

    def lose(self, seconds: float) -> None:
        """Add seconds that other processes cost, by slowing a run or by a wait."""
        if self.patience is not None:
            self.patience.lose(seconds)

    def wait_until_quiet(self, machine: QuietMachine, display: Display, check: Callable[[], None]) -> None:
        """Wait for a while if others may use the machine; if they stay, let disturbed runs of comparisons count.

        Raises:
            CannotRunHereError: Others stay, and the study refuses disturbed runs.
        """
        # A look takes a second, and on a machine that is never quiet nothing follows from it.
        if not self.suspects or any(self._never_quiet.values()):
            return
        waited_s, use = machine.wait(display, check, max(self.patience_s, 0.0))
        self.lose(waited_s)
        if not use.is_quiet:
            if self.mode == "refuse":
                msg = f"this machine is not quiet: {use.words()}\n{NEVER_QUIET}, then use the same command again"
                raise CannotRunHereError(msg)
            self._give_up_quiet(tuning=False)
        self.suspects = False

    @property
    def is_busy(self) -> bool:
        """Whether other processes disturb most runs."""
        lately = len(self._lately) >= _LEAST_LATELY and 2 * sum(self._lately) >= len(self._lately)
        return lately or any(self._never_quiet.values())

    def is_disturbed(self, outcome: Outcome) -> bool:
        """Whether other processes can have changed the value of a run by more than the study's noise."""
        return _is_beyond(self.sensitivity.threshold, outcome)

    @property
    def sensitivity(self) -> Sensitivity:
        """How much other processes changed the runs so far."""
        return sensitivity(self._observed)

    def _repeats(self, *, tuning: bool) -> bool:
        """Whether a disturbed run is set aside, to be repeated; with "refuse" it is not repeated either."""
        if self.mode == "refuse":
            return True
        if self._aside[tuning] >= _FREE + self.again * self._counted[tuning] or self.patience_s <= 0.0:
            self._give_up_quiet(tuning=tuning)
        return not self._never_quiet[tuning]

    def _offer_yielding(self, job: Mapping[str, Any]) -> None:
        """Say once what lets others run while ranks wait; without that many ranks lose far more than others took."""
        if not self._offered and (said := spinning_ranks(job)):
            self._offered = True
            self.line(said)

    def _give_up_quiet(self, *, tuning: bool) -> None:
        if not self._never_quiet[tuning]:
            self._never_quiet[tuning] = True
            what = "trials" if tuning else "pairs"
            self.line(
                f"other processes use this machine all the time: from now on, disturbed {what} count, and the verdict "
                "says what others took"
            )

    def _observe(self, purpose: Purpose, outcome: Outcome) -> None:
        value, taken = outcome.measured.get(self.metric.name), outcome.disturbance.taken_share
        if value is None or value <= 0.0 or taken is None or purpose.steps is not None:
            return
        workload = purpose.series.before.of if purpose.series.before.kind is SeriesKind.WORKLOAD else ()
        if self.patience is not None:
            self.patience.ran(outcome.usage.elapsed_s, taken)
        configuration = (workload, frozenset(purpose.configuration.items()))
        self._observed.append(ObservedRun(configuration, self.metric.cost(log(value)), taken))


def _explain_timeout(run: RunInFlight, outcome: Outcome) -> Outcome:
    """Return the outcome with what others took from a run that reached its time limit, if it was notable."""
    taken = outcome.disturbance.taken_share
    if outcome.failure is not FailureKind.TIMED_OUT or taken is None or taken < NOTABLE_SHARE:
        return outcome
    reasons = (outcome.message, outcome.disturbance.describe(), spinning_ranks(run.job))
    return replace(outcome, message="; ".join(filter(None, reasons)))


def _is_beyond(limit: float, outcome: Outcome) -> bool:
    taken = outcome.disturbance.taken_share
    return taken is not None and taken > limit and taken * outcome.usage.elapsed_s > _LEAST_LOST_S
