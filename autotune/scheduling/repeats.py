"""The repeat scheduler: which run comes next in a session, so that every run can change a decision.

In this order:

1. the default configuration, until the noise is known;
2. every open trial, until its race against the incumbent is decided and it is clear whether it keeps the limits;
3. the default again, now and then: it starts a new block of time and shows whether the machine drifts;
4. a new incumbent as often as the default, since a lucky run must not decide against all later trials;
5. capped trials whose bound is now below the incumbent's value, which has become worse by its later runs.

If none of these is due, a new trial may start.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median

from autotune.execution.capping import Cap, make_cap
from autotune.execution.segments import Segment
from autotune.records.points import median_points
from autotune.records.series import TUNING, WARM_UP, RunId, Series
from autotune.records.study import RECORDED_CAP, Purpose, State, TrialRecord
from autotune.scheduling.mix_cap import mix_cap
from autotune.scheduling.paces import Paces
from autotune.statistics.front_race import FrontRace
from autotune.statistics.racing import RaceRules, Standing, losing_value, standing
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.studyfile import RepeatsSection
from autotune.studyfile.definition import MixedInput

# A warm-up fills caches and wakes the processor, which takes less than this.
WARM_UP_LIMIT_S = 60.0


@dataclass(frozen=True)
class Step:
    """One run to be made: of tuning, or a warm-up, which does not count.

    Args:
        trial: The trial to run.
        series: What the run is for.
        segment: The steps to train, for a program that works in steps.
    """

    trial: TrialRecord
    series: Series = TUNING
    segment: Segment | None = None

    @property
    def reaches(self) -> tuple[int, int] | tuple[None, None]:
        """The last step of this run and that of a whole training; both None for a program that is not given steps."""
        return (None, None) if self.segment is None else (self.segment.steps, self.segment.of)

    @property
    def run_name(self) -> str:
        """The name of its run."""
        if self.series == WARM_UP:
            return str(RunId(WARM_UP))
        return str(RunId(trial=self.trial.number, number=self.segment.steps if self.segment else len(self.trial.runs)))


@dataclass
class RepeatScheduler:
    """Decides the runs of a study of whole runs.

    Args:
        repeats: The study file's rules.
        front: Judges places on the front of a trade-off, which has no incumbent.
        inputs: The inputs of a study with several.
        block: The number of the present block of time.
        paces: Forecasts of programs that report their steps.
        together: Whether the first runs of the default may be in flight together.
    """

    repeats: RepeatsSection
    front: FrontRace | None = None
    inputs: tuple[MixedInput, ...] = ()
    block: int = 0
    paces: Paces = field(default_factory=Paces)
    together: bool = False
    _warm_ups: int = 0
    _baselines: int = 0
    _baselines_in_flight: int = 0
    _since_baseline: float = 0.0
    _left_alone: set[int] = field(default_factory=set)
    # The trials whose places on the front were judged certain, with the records that they were judged by.
    _placed: dict[int, TrialRecord] = field(default_factory=dict)

    @property
    def rules(self) -> RaceRules:
        """The rules by which a configuration is run again."""
        return self.repeats.rules

    def next(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return the next run; None if a new trial may start, or the runs in flight have to end first."""
        default = standings.default
        if default is not None and not self.is_ready(standings):
            if default.number in busy and not (self.together and self._missing(default) > self._baselines_in_flight):
                return None
            return Step(default, WARM_UP if self._warm_ups < self.repeats.warm_up_runs else TUNING)
        free = (number for number in standings.open if number not in busy and number not in self._left_alone)
        number = next(free, None)
        if number is not None:
            return Step(self._for_race(standings.trials[number], standings, busy))
        if default is not None and self._baseline_is_due(default) and default.number not in busy:
            return Step(default)
        again = next((trial for trial in self.deserving(standings) if self._may_run(trial, busy)), None)
        return Step(again) if again else None

    def _may_run(self, trial: TrialRecord, busy: Collection[int]) -> bool:
        return trial.number not in busy and trial.number not in self._left_alone

    def deserving(self, standings: Standings) -> list[TrialRecord]:
        """Return the settled trials to run again: an incumbent with few runs, and trials capped below its value.

        If no trial keeps the limits, these are all capped trials: what they lost against has turned out to break a
        limit. Of a trade-off they are the trials whose place on the front became uncertain when another lost its own.
        """
        if self.front is not None:
            return self._trials_pushed_off(self.front, standings)
        best = standings.incumbent
        if best is not None and not best.settled:
            return []
        is_young = best is not None and len(best.runs) < min(self.repeats.baseline_runs, self.rules.max_runs)
        young = [best] if best is not None and is_young else []
        value = inf if best is None else standings.effects.center(best.number)
        return young + [
            trial
            for trial in standings.trials_capped_below(value)
            if len(trial.runs) < self.rules.max_runs and trial.outcomes[-1].code != RECORDED_CAP
        ]

    def _trials_pushed_off(self, front: FrontRace, standings: Standings) -> list[TrialRecord]:
        front.follow(standings.trials, standings.limits.keeps)
        unsure = []
        for number in front.front:
            trial = standings.trials[number]
            if not trial.settled or trial is standings.default or self._placed.get(number) is trial:
                continue
            if front.standing(number, self.rules) is Standing.OPEN:
                unsure.append(trial)
            else:
                self._placed[number] = trial
        return unsure

    def is_ready(self, standings: Standings) -> bool:
        """Whether the default configuration has the runs that it needs before other trials start."""
        default = standings.default
        if default is None:
            return False
        if default.number in self._left_alone or default.state is State.FAILED:
            return True
        return self._warm_ups >= self.repeats.warm_up_runs and self._missing(default) <= 0

    def _missing(self, default: TrialRecord) -> int:
        """Return how many runs the default still needs; at least one in each session."""
        return max(self.repeats.baseline_runs - len(default.runs), 0 if self._baselines else 1)

    def _baseline_is_due(self, default: TrialRecord) -> bool:
        every = self.repeats.baseline_every
        is_due = every > 0 and self._since_baseline >= every
        return is_due and default.complete and default.number not in self._left_alone

    def _for_race(self, trial: TrialRecord, standings: Standings, busy: Collection[int]) -> TrialRecord:
        """Return the side of a race to run next: the one with fewer runs, whose next run says more."""
        rival = self._rival(trial, standings)
        if rival is None or not trial.runs or rival.number in busy or rival.number in self._left_alone:
            return trial
        if standings.limits.standing(trial.number, self.rules) is Standing.OPEN:
            return trial
        if standings.effects.drift > 0.0:
            # Under drift, only runs of the same block of time compare well.
            for side in (rival, trial):
                if not standings.effects.values(side.number, self.block):
                    return side
        if len(trial.runs) <= len(rival.runs) or len(rival.runs) >= self.rules.max_runs:
            return trial
        return rival

    def _rival(self, trial: TrialRecord, standings: Standings) -> TrialRecord | None:
        """Return the trial to beat: the incumbent, or the point of the front that is most likely to be better."""
        if self.front is None:
            return standings.incumbent
        self.front.follow(standings.trials, standings.limits.keeps)
        number = self.front.rival(trial.number, self.rules) if trial.complete else None
        return None if number is None else standings.trials[number]

    def start(self, step: Step, standings: Standings) -> None:
        """Note the start of a run: one of the default configuration opens a new block."""
        default = standings.default
        if default is None or step.trial.number != default.number or not step.series.is_tuning:
            return
        self._baselines_in_flight += 1
        if self._baselines and self.is_ready(standings):
            self.block += 1
        self._since_baseline = 0.0

    def finish(self, purpose: Purpose, standings: Standings) -> None:
        """Note the end of a run."""
        default = standings.default
        if purpose.series == WARM_UP:
            self._warm_ups += 1
        elif default is not None and purpose.trial == default.number:
            self._baselines += 1
            self._baselines_in_flight -= 1
        else:
            self._since_baseline += _part(purpose, standings)

    def leave_alone(self, trial: TrialRecord) -> None:
        """Run a trial no more in this session, since the machine keeps failing it."""
        self._left_alone.add(trial.number)

    def next_when_idle(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return None: a run that cannot change a decision is not made, even when cores are idle."""
        del standings, busy
        return None

    def rest_of_default(self, standings: Standings, busy: Collection[int]) -> Step | None:
        """Return None: the default has its value before any other trial."""
        del standings, busy
        return None

    def observation(self, trial: TrialRecord, standings: Standings) -> Observation:
        """Return what the sampler learns from a trial."""
        observed = observation(trial, standings)
        if standings.limits.limits:
            observed = replace(observed, limited=standings.limits.known(trial))
        if not trial.complete:
            return observed
        others = self.front.metrics[1:] if self.front is not None else ()
        values = ((metric, trial.measured(metric.name)) for metric in others)
        costs = (metric.cost(median(measured)) if measured else None for metric, measured in values)
        return replace(observed, others=tuple(costs))

    def is_settled(self, trial: TrialRecord, standings: Standings, busy: Collection[int] = ()) -> bool:
        """Whether no further run of a trial can change a decision."""
        del busy
        if not trial.complete:
            return bool(trial.runs)
        if standings.default is trial:
            return len(trial.runs) >= self.repeats.baseline_runs
        limits = standings.limits.standing(trial.number, self.rules)
        rival = standings.incumbent
        if self.front is not None and limits is not Standing.LOST:
            self.front.follow(standings.trials, standings.limits.keeps)
            place = self.front.standing(trial.number, self.rules)
            return place is Standing.LOST or (place is Standing.WON and limits is not Standing.OPEN)
        if limits is Standing.LOST or rival is None or rival.number == trial.number:
            return len(trial.runs) >= self.rules.min_runs and limits is not Standing.OPEN
        race = standing(standings.effects, trial.number, rival.number, self.rules)
        return race is Standing.LOST or (race is Standing.WON and limits is not Standing.OPEN)

    def cap(self, trial: TrialRecord, standings: Standings) -> Cap | None:
        """Return the cap at which the next run of a challenger has lost; None for the incumbent and the default.

        Where others disturb runs, it is later by their recent slowdown, since bounds are compared undisturbed.
        A run of a trade-off has no cap: what it loses in one metric it may gain in another.
        """
        if self.front is not None:
            return None
        rival = standings.incumbent
        untouched = {other.number for other in (rival, standings.default) if other is not None}
        if not self.repeats.caps or rival is None or not rival.complete or trial.number in untouched:
            return None
        bound = losing_value(standings.effects, trial.number, rival.number, self.block, self.rules)
        if bound == inf:
            return None
        bound += standings.recent_slowdown
        if self.inputs:
            runs = (other.outcomes for other in standings.trials.values())
            return mix_cap(standings.metric, standings.from_log(bound), self.inputs, runs)
        return make_cap(
            standings.metric,
            standings.from_log(bound),
            overhead_s=standings.overhead_s,
            pace=self.paces.of(trial, rival, standings, self.rules.error_rate),
        )


def observation(trial: TrialRecord, standings: Standings) -> Observation:
    """Return what the sampler learns from a trial that is not paused."""
    match trial.state:
        case State.COMPLETE:
            points = median_points(outcome.details for outcome in trial.outcomes if outcome.complete)
            runs = len(trial.measured(standings.metric.name))
            return Observation(value=standings.undisturbed_value(trial), runs=runs, points=points)
        case State.CAPPED:
            return Observation(bound=standings.undisturbed_value(trial))
        case State.RUNNING:
            return Observation(pending=True)
        case _:
            return Observation()


def _part(purpose: Purpose, standings: Standings) -> float:
    """Return the share of a whole run's time that a run took, since a machine drifts with time and not with runs."""
    trial, best = standings.trials.get(-1 if purpose.trial is None else purpose.trial), standings.incumbent
    if trial is None or not trial.runs or not trial.outcomes[-1].capped or best is None or not best.runs:
        return 1.0
    whole_s = best.outcomes[-1].usage.elapsed_s
    return min(1.0, trial.outcomes[-1].usage.elapsed_s / whole_s) if whole_s > 0.0 else 1.0
