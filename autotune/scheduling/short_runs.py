"""Short runs that stand for long ones: a whole run is made where a short one shows that it may pay.

Every trial but the default begins with a short run. Some are run whole in any case, to learn what short runs are worth
(`whole_runs`): the best of the first few, and for each value of a parameter one trial that has it, since a value may
have a start of its own. From then on a trial is run whole at once if it will probably beat the incumbent. The others
wait until there are no more new trials; then those that may beat it are run whole, the greatest expected improvement
first, until none of the rest has a chance beyond the error rate of races. So a bad forecast costs time, and a
winner only as often as that. A trial that would beat the incumbent if one of its values had a start of its own is run
whole as well, since a forecast may not know of that. As long as the interval of their rank correlation does not show
that short runs rank as whole ones do, every trial is run whole; a capped run counts there with its bound.

Short runs are to save time, or to cost little. How long they take is set against how long whole runs take here, caps
included: where that is too large a share no more are made, from the default's own on. Nor are they where they do not
rank, or where too many trials need a whole run as well. Whole runs are then capped as in any study.

The default has a short run now and then: how these differ says how far the machine drifts, which short runs apart in
time are off by. Where it does, they also bring the next baseline nearer, and nothing is capped. Values, races, caps and
comparisons are those of whole runs alone.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from math import exp, hypot, log, sqrt
from statistics import median, stdev
from typing import ClassVar

import numpy as np

from autotune.execution.capping import Cap
from autotune.records.series import Series
from autotune.records.short_runs import all_short_runs, short_runs
from autotune.records.study import Purpose, Run, State, TrialRecord
from autotune.scheduling.own_starts import OwnStarts, Values, values_of
from autotune.scheduling.repeats import RepeatScheduler, Step
from autotune.statistics.rank_correlation import bounded_rank_correlation
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.studyfile.fidelity import FidelitySection
from spaces import Space

# That many short runs are compared before the first of them is run whole, and so many are run whole to learn from.
_COMPARED = 6
_PAIRS = 5
# After so many pairs that do not show that short runs rank as whole ones do, no more short ones are made.
_DOUBTED = 12
# A trial is run whole at once from this chance on.
_PROBABLE = 0.5
# Until they are known to rank, short runs may take this share of the time of whole ones: if one trial in three then
# needs a whole run as well, a dozen trials pay back what learning has cost.
_DEAR = 1.0 / 3.0
# How long a whole run takes is that of so many of the newest trials.
_NEWEST = 5
# That many more trials are thought to need no whole run, so that the first few say little.
_LEFT = 2
_LEAST_WEIGHT = 0.01
# Short runs of the default that differ by so many times the noise of a run show a drift.
_DRIFTING = 2.0


@dataclass(frozen=True)
class Hopes:
    """What short runs tell of trials without whole ones, by number.

    `short` are their values; those in `failed` gave none. Once that can be said, there is the `chance` to beat the
    incumbent, the expected improvement (`gain`), and what the sampler is `told`; short runs are `ranked` if they are
    known to rank as whole ones do. All trials in `tried` had a short run;
    that many `pairs` have both. `unknown` are the values that no pair has. The default had `repeats` short runs, and
    `since` the last of them were others; they differ by `drift` (standard deviation of logarithms). A short run takes
    `short_s` seconds, the median.
    """

    short: dict[int, float] = field(default_factory=dict)
    failed: frozenset[int] = frozenset()
    tried: frozenset[int] = frozenset()
    pairs: int = 0
    unknown: dict[int, Values] = field(default_factory=dict)
    repeats: int = 0
    since: int = 0
    drift: float = 0.0
    short_s: float = 0.0
    pays: bool = True
    known: bool = False
    ranked: bool = False
    chance: dict[int, float] = field(default_factory=dict)
    gain: dict[int, float] = field(default_factory=dict)
    told: dict[int, tuple[float, float]] = field(default_factory=dict)


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
    def block(self) -> int:
        """The number of the present block of time."""
        return self.repeats.block

    @block.setter
    def block(self, number: int) -> None:
        self.repeats.block = number

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next run; None when a new trial may start, or the running ones have to end first."""
        if not self.ready(standings):
            return self.repeats.next(standings, busy)
        self._runs = self.made()  # other coordinators make some, too
        hopes = self._hopes(standings)
        waiting = {number for number in self._without(standings) if not self._goes_on(number, hopes, busy)}
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
        drifting = purpose.trial in standings.trials and self._drifts(self._hopes(standings), standings)
        self._runs = None
        if purpose.steps is None or drifting:
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
        is_pair = hopes.pays and (hopes.pairs < _PAIRS or bool(hopes.unknown.get(trial.number)))
        return None if is_pair or self._drifts(hopes, standings) else self.repeats.cap(trial, standings)

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> bool:
        """Whether no further run could change what a trial is worth."""
        if trial.runs or trial is standings.default:
            return self.repeats.is_settled(trial, standings, busy)
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
            if scout is not None or hopes.pairs < _PAIRS:
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
            self._known = state, self._computed(self._runs, standings)
        return self._known[1]

    def _computed(self, runs: Sequence[Run], standings: Standings) -> Hopes:
        made = short_runs(runs, self.section.low, self.section.high)
        name = standings.metric.name
        values = {
            number: standings.to_log(run.outcome.metrics[name]) for number, run in made.items() if run.outcome.complete
        }
        failed = frozenset(made.keys() - values.keys())
        bare = {
            number: value
            for number, value in values.items()
            if number in standings.trials and standings.trials[number].state in {State.RUNNING, State.SHORT}
        }
        pairs = [number for number in values if number in standings.trials and standings.trials[number].complete]
        having = self._values([*bare, *pairs], standings)
        covered: Values = frozenset().union(*(having[number] for number in pairs))
        unknown = {number: having[number] - covered for number in bare}
        short_s = median(made[number].outcome.usage.elapsed_s for number in values) if values else 0.0
        hopes = Hopes(bare, failed, frozenset(made), len(pairs), unknown, *self._drift(runs, standings), short_s)
        hopes = self._judged(hopes, pairs, values, standings)
        return replace(hopes, pays=hopes.pays and self._pays(hopes, standings))

    def _values(self, numbers: Sequence[int], standings: Standings) -> dict[int, Values]:
        return values_of(self.space, {number: standings.trials[number].configuration for number in numbers})

    def _drift(self, runs: Sequence[Run], standings: Standings) -> tuple[int, int, float]:
        """Return how many short runs the default had, how many others had one since, and how far its own differ."""
        default = standings.default
        every = all_short_runs(runs, self.section.low, self.section.high)
        mine = every.get(default.number, []) if default is not None else []
        if not mine:
            return 0, 0, 0.0
        since = sum(
            run.trial != mine[-1].trial for run in runs[runs.index(mine[-1]) :] if run.series == mine[-1].series
        )
        name = standings.metric.name
        values = [standings.to_log(run.outcome.metrics[name]) for run in mine if run.outcome.complete]
        return len(mine), since, stdev(values) if len(values) > 1 else 0.0

    def _drifts(self, hopes: Hopes, standings: Standings) -> bool:
        """Whether short runs of the default differ by more than whole runs explain."""
        return hopes.drift > max(_DRIFTING * standings.effects.noise, standings.effects.drift)

    def _judged(
        self,
        hopes: Hopes,
        pairs: Sequence[int],
        values: dict[int, float],
        standings: Standings,
    ) -> Hopes:
        """Add what pairs of short and whole runs tell of the trials without whole runs."""
        # They import SciPy, and a study without short runs needs none of it.
        from scipy.special import ndtr, stdtr  # noqa: PLC0415

        from autotune.scheduling.whole_runs import WholeRuns  # noqa: PLC0415

        incumbent = standings.incumbent
        if len(pairs) < _PAIRS or incumbent is None:
            return hopes
        effects, numbers = standings.effects, list(hopes.short)
        whole = np.array([effects.center(number) for number in pairs])
        # A capped run is no pair to foretell from; but it is known what it is slower than, and that is a rank.
        lost = [number for number in values if _is_capped(standings.trials.get(number))]
        bounds = [standings.to_log(standings.bound(standings.trials[number])) for number in lost]
        ranks = bounded_rank_correlation(
            [values[number] for number in [*pairs, *lost]],
            [*whole.tolist(), *bounds],
            [False] * len(pairs) + [True] * len(lost),
        )
        if ranks is None or ranks.low <= 0.0:
            every = dict.fromkeys(numbers, 1.0)
            doubted = len(pairs) + len(lost) >= _DOUBTED
            return replace(hopes, pays=not doubted, known=True, chance=every, gain=every)
        hopes = replace(hopes, ranked=True)
        if not hopes.short:
            return hopes
        model = WholeRuns.of(self._traits(pairs, standings), np.array([values[number] for number in pairs]), whole)
        forecast = model.forecast(self._traits(numbers, standings), np.array([values[number] for number in numbers]))
        # Short and whole runs of a trial may be far apart in time, and the incumbent's value is not exact either.
        around = 2.0 * max(effects.drift, hopes.drift) ** 2 + effects.variance(effects.count(incumbent.number))
        spread = np.sqrt(forecast.spread**2 + around)
        ahead = effects.center(incumbent.number) - log(1.0 + self.repeats.rules.min_gain) - forecast.mean
        z = ahead / spread
        chance = dict(zip(numbers, stdtr(forecast.degrees, z).tolist(), strict=True))
        own = self._with_own_start(hopes, pairs, values, standings)
        chance |= {number: max(chance[number], self.repeats.rules.error_rate) for number in own}
        gain = ahead * ndtr(z) + spread * np.exp(-0.5 * z * z) / sqrt(2 * np.pi)
        weight = np.clip(effects.noise**2 / forecast.spread**2, _LEAST_WEIGHT, 1.0)
        told = zip(forecast.mean.tolist(), weight.tolist(), strict=True)
        return replace(
            hopes,
            known=True,
            chance=chance,
            gain=dict(zip(numbers, gain.tolist(), strict=True)),
            told=dict(zip(numbers, told, strict=True)),
        )

    def _with_own_start(
        self, hopes: Hopes, pairs: Sequence[int], values: dict[int, float], standings: Standings
    ) -> set[int]:
        """Return the trials that would beat the incumbent if one of their values had a start of its own."""
        best = standings.incumbent
        if best is None:
            return set()
        effects, metric = standings.effects, standings.metric
        starts = OwnStarts(
            self._values([*hopes.short, *pairs], standings),
            {number: exp(values[number]) for number in [*hopes.short, *pairs]},
            {number: exp(effects.center(number)) for number in pairs},
            self.section.high / self.section.low if metric.direction == "minimize" else 1.0,
            hypot(effects.noise, hopes.drift),
        )
        least = exp(effects.center(best.number)) / (1.0 + self.repeats.rules.min_gain)
        return {number for number in hopes.short if starts.may_reach(number, least)}

    def _pays(self, hopes: Hopes, standings: Standings) -> bool:
        """Whether a short run of every trial, and whole ones of those that need one, take less than whole ones.

        Those that were made whole after the pairs needed one, too.
        """
        share = self._share(hopes, standings)
        if not hopes.ranked:
            return share <= _DEAR
        more = max(0, len(hopes.tried) - len(hopes.short) - len(hopes.failed) - _PAIRS - 1)
        unsure = sum(one >= self.repeats.rules.error_rate for one in hopes.chance.values())
        return share + (unsure + more) / (len(hopes.short) + more + _LEFT) < 1.0

    def _share(self, hopes: Hopes, standings: Standings) -> float:
        """Return what a short run takes of the time of the newest trials' whole ones, which may have been capped."""
        ended = (trial for trial in standings.trials.values() if trial.complete or _is_capped(trial))
        ran = [trial.runs[-1].outcome.usage.elapsed_s for trial in ended]
        usual_s = median(ran[-_NEWEST:]) if ran else 0.0
        return hopes.short_s / usual_s if usual_s > 0.0 else 0.0

    def _traits(self, numbers: Sequence[int], standings: Standings) -> np.ndarray:
        configurations = [standings.trials[number].configuration for number in numbers]
        return self.space.traits_of(self.space.indices(configurations))


def _is_capped(trial: TrialRecord | None) -> bool:
    return trial is not None and trial.state is State.CAPPED
