"""Short runs that stand for long ones: a whole run is made where a short one shows that it may pay.

Every trial but the default begins with a short run. Some are run whole in any case, to learn what short runs are worth
(`whole_runs`): the best of the first few, and for each value of a parameter one trial that has it, since a value may
have a start of its own. From then on a trial is run whole at once if it will probably beat the incumbent. The others
wait until there are no more new trials; then those that may beat it are run whole, the greatest expected improvement
first, until none of the rest has a chance beyond the error rate of races. So a bad forecast costs time, and a
winner only as often as that. A trial that would beat the incumbent if one of its values had a start of its own is run
whole as well, since a forecast may not know of that. As long as the interval of their rank correlation does not show
that short runs rank as whole ones do, every trial is run whole; a capped run counts there with its bound.

Where short runs do not pay (`hopes`), no more are made, and whole runs are capped as in any study. Nor are any made
of a program that tells its steps: a whole run is begun, and stopped when its pace has lost (`paces`).

What only refines a value, a race or a repeat of a new best, waits until there are no more new trials: first all are
screened, then the best compared (Nelson, Swann, Goldsman & Song, "Simple procedures for selecting the best simulated
system when the number of alternatives is large", Operations Research 49, 2001).

The default has a short run now and then: how these differ says how far the machine drifts, which short runs apart in
time are off by. Where it does, they also bring the next baseline nearer, and nothing is capped. Values, races, caps and
comparisons are those of whole runs alone.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from autotune.execution.capping import Cap
from autotune.records.series import WARM_UP, Series
from autotune.records.study import Purpose, Run, TrialRecord
from autotune.scheduling.hopes import PAIRS, Hopes, Hoping, drifts
from autotune.scheduling.repeats import RepeatScheduler, Step
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.studyfile.fidelity import FidelitySection
from spaces import Space

# That many short runs are compared before the first of them is run whole.
_COMPARED = 6
# A trial is run whole at once from this chance on.
_PROBABLE = 0.5


@dataclass
class ShortRunScheduler:
    """What a session has to run; `repeats` decides on whole runs, `made` returns every run of the study so far."""

    repeats: RepeatScheduler
    section: FidelitySection
    space: Space
    made: Callable[[], Sequence[Run]]
    apart: ClassVar[bool] = False
    """What a trial without a whole run tells depends on the others."""
    _left_alone: set[int] = field(default_factory=set)
    _over: bool = False
    _runs: Sequence[Run] | None = None
    _known: tuple[object, Hopes] | None = None

    @property
    def _hoping(self) -> Hoping:
        return Hoping(self.section, self.space, self.repeats.rules, self.repeats.paces, self.repeats.repeats.caps)

    @property
    def block(self) -> int:
        """The number of the present block of time."""
        return self.repeats.block

    @block.setter
    def block(self, number: int) -> None:
        self.repeats.block = number

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next run; None when a new trial may start, or the running ones have to end first."""
        if not self.ready(standings):
            step = self.repeats.next(standings, busy)
            if step is None or step.series != WARM_UP:
                return step
            return replace(step, until=(self.section.low, self.section.high))
        self._runs = self.made()  # other coordinators make some, too
        hopes = self._hopes(standings)
        waiting = {number for number in self._without(standings) if not self._goes_on(number, hopes, busy)}
        waiting |= {one.number for one in standings.trials.values() if one.runs and one is not standings.default}
        whole = self.repeats.next(standings, {*busy, *waiting})
        return whole if whole is not None else self._short(standings, busy, hopes)

    def idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the whole run that is most worth its time, for a worker that has nothing else to do."""
        hopes = self._hopes(standings)
        scout = self._scout(hopes, busy)
        if scout is not None:
            return Step(standings.trials[scout])
        worth = [trial for trial in self._unsure(standings, hopes) if self._may_run(trial.number, busy)]
        if worth:
            return Step(worth[0])
        again = self.repeats.next(standings, {*busy, *self._without(standings)})
        if again is not None:
            return again
        self._over = not busy
        return None

    def ready(self, standings: Standings) -> bool:
        """Whether the default configuration has run as often as is needed before others."""
        return self.repeats.ready(standings)

    def deserving(self, standings: Standings) -> list[TrialRecord]:
        """Return the settled trials that deserve another run, or their first whole one."""
        unsure = self._unsure(standings, self._hopes(standings)) if self.ready(standings) else []
        return [*self.repeats.deserving(standings), *(trial for trial in unsure if trial.settled)]

    def starts(self, step: Step, standings: Standings) -> None:
        """Take note of a run that starts."""
        self._over = False
        self.repeats.starts(step, standings)

    def ended(self, purpose: Purpose, standings: Standings) -> None:
        """Take note of a run that ended."""
        # Where the machine drifts, a short run takes the time of a whole one nearer to the next baseline.
        drifting = purpose.trial in standings.trials and drifts(self._hopes(standings), standings)
        self._runs = None
        if purpose.steps is None or drifting or purpose.series == WARM_UP:
            self.repeats.ended(purpose, standings)

    def leave_alone(self, trial: TrialRecord) -> None:
        """Run a trial no more in this session: the machine fails it."""
        self._left_alone.add(trial.number)
        self.repeats.leave_alone(trial)

    def cap(self, trial: TrialRecord, standings: Standings) -> Cap | None:
        """Return from where on the next whole run of a trial has lost; those that are learnt from are not stopped.

        Nor is any where the machine drifts: there are too few whole runs for races to know that.
        """
        hopes = self._hopes(standings)
        is_pair = hopes.pays and (hopes.pairs < PAIRS or bool(hopes.unknown.get(trial.number)))
        if is_pair or drifts(hopes, standings):
            return None
        # Races wait, so that the best so far may not have won its own yet; how unsure its value is, is known.
        return self.repeats.cap(trial, standings, next(iter(standings.ranking), None))

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        """Whether no further run could change what a trial is worth."""
        if trial.runs or trial is standings.default:
            return self.repeats.is_settled(trial, standings, busy)
        if trial.number in self._left_alone:
            return False  # what the machine fails is for the next session
        return self._over and trial.number in self._hopes(standings).short

    def observation(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what a trial tells the sampler: without a whole run what is foretold, as part of a run's worth."""
        if trial.runs:
            return self.repeats.observation(trial, standings)
        told = self._hopes(standings).told.get(trial.number)
        if told is None:
            return Observation(pending=True)
        return Observation(value=standings.from_log(told[0]), runs=told[1], partial=True)

    def _short(self, standings: Standings, busy: Collection[int], hopes: Hopes) -> Step | None:
        """Return a short run: of the default, then of each trial that has had none."""
        if not hopes.pays:
            return None
        default = standings.default
        lacking = [*([default] if default is not None else []), *self._without(standings).values()]
        every = self.repeats.repeats.baseline_every
        again = 0 < every <= hopes.since and any(trial.number not in hopes.tried for trial in lacking)
        for trial in lacking:
            is_due = trial is default and again
            if (is_due or trial.number not in hopes.tried) and self._may_run(trial.number, busy):
                reach = self.section.low, self.section.high
                return Step(trial, Series.short(reach[0]), until=reach, before=hopes.repeats if is_due else 0)
        return None

    def _goes_on(self, number: int, hopes: Hopes, busy: Collection[int]) -> bool:
        """Whether a trial without a whole run is to have one now."""
        if number in hopes.failed or (not hopes.pays and (number not in hopes.short or not hopes.known)):
            return True
        if number not in hopes.short:
            return False
        if len(hopes.short) + hopes.pairs > _COMPARED:
            scout = self._scout(hopes, busy)
            if scout is not None or hopes.pairs < PAIRS:
                here = {other: value for other, value in hopes.short.items() if self._may_run(other, busy)}
                return number == (min(here, key=lambda one: here[one], default=None) if scout is None else scout)
        return hopes.known and hopes.chance[number] > _PROBABLE

    def _scout(self, hopes: Hopes, busy: Collection[int]) -> int | None:
        """Return the trial with most values that no pair has, of equal ones the best; None where none has any."""
        ways = [number for number, values in hopes.unknown.items() if values and self._may_run(number, busy)]
        return min(ways, key=lambda one: (-len(hopes.unknown[one]), hopes.short[one]), default=None)

    def _unsure(self, standings: Standings, hopes: Hopes) -> list[TrialRecord]:
        """Return the trials without whole runs that may beat the incumbent, the most promising first."""
        least = self.repeats.rules.error_rate
        if not hopes.known:
            return [standings.trials[number] for number in sorted(hopes.short, key=lambda one: hopes.short[one])]
        worth = (number for number in hopes.short if hopes.chance[number] >= least)
        return [standings.trials[number] for number in sorted(worth, key=lambda one: -hopes.gain[one])]

    def _without(self, standings: Standings) -> dict[int, TrialRecord]:
        """Return the open trials without whole runs, but for the default, in their order."""
        opened = (standings.trials[number] for number in standings.open)
        return {trial.number: trial for trial in opened if not trial.runs and trial is not standings.default}

    def _may_run(self, number: int, busy: Collection[int]) -> bool:
        return number not in busy and number not in self._left_alone

    def _hopes(self, standings: Standings) -> Hopes:
        if self._runs is None:
            self._runs = self.made()
        best = standings.incumbent
        state = len(self._runs), len(standings.trials), standings.settled, best and (best.number, len(best.runs))
        if self._known is None or self._known[0] != state:
            self._known = state, self._hoping.of(self._runs, standings)
        return self._known[1]
