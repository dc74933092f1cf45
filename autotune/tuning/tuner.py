"""The study runner: the coordinator's loop from the first trial to the last."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from enum import Enum

from autotune.coordination.run_manager import Bench, TakenError
from autotune.display.console import Status
from autotune.display.messages import Messages, why_nothing_worked
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.execution.segments import Curve, Segment, best_until, continued, curve_of
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.records.series import WARM_UP, RunId
from autotune.records.study import Purpose, Run, State, TrialRecord
from autotune.results.pareto import second_metric
from autotune.scheduling.checkpoints import Checkpoints
from autotune.scheduling.equivalence import Equivalence
from autotune.scheduling.repeats import WARM_UP_LIMIT_S, RepeatScheduler, Step
from autotune.scheduling.stopping import StoppingForecast, can_tell, is_due, look_ahead, stored_stopping_forecast
from autotune.scheduling.stored_brackets import brackets_of
from autotune.scheduling.successive_halving import SuccessiveHalvingScheduler
from autotune.search.asker import Asker
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.studyfile import StudyFile
from autotune.tuning.in_flight import Flight, Flights, Ready
from objectives.base import Answer

_TICK_S = 0.25
# That many runs in a row without a working machine under them: it is the machine.
_BROKEN_AFTER = 3


class Ending(Enum):
    """Why a session stopped tuning."""

    BUDGET = "the budget is used"
    PAYS_NO_MORE = "more search no longer pays"
    EXHAUSTED = "every valid configuration has been measured"
    TIMEOUT = "the time given is over"


class TuningLoop:
    """Runs the trials of one study until its budget is used."""

    def __init__(
        self,
        asker: Asker,
        bench: Bench,
        study: StudyFile,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Run on `bench` what `asker` proposes, as `study` says, once `tune` is called. The `clock` is the bench's."""
        self._asker = asker
        self._store = store = asker.store
        self._space = asker.space
        self._bench = bench
        self._study = study
        self._budget = study.budget
        self._clock = clock or bench.clock
        self._metric = store.definition.target
        self._checkpoints = Checkpoints(bench.runs, store.mark)
        repeats = study.repeats if study.tradeoff is None else study.repeats.without_races
        self._agenda: RepeatScheduler | SuccessiveHalvingScheduler = RepeatScheduler(
            repeats, second_metric(store.definition)
        )
        if study.stopping is not None:
            self._agenda = SuccessiveHalvingScheduler(
                study.stopping, self._metric, brackets_of(store, study, study.stopping)
            )
        self._standings = Standings({}, self._metric, study.repeats.statistic)
        self._telling = Messages(self._standings)
        self._sameness = Equivalence(None)
        # What is known of the trials by the sampler, and the trials of which there is more to know.
        self._observed: dict[int, Observation] = {}
        self._unobserved: set[int] = set()
        # The trials whose races are over, of which storage is not told yet.
        self._closed: dict[int, Observation] = {}
        self._flights = Flights()
        self._machine_faults = 0
        self._ends_at = float("inf")
        self._ending = Ending.BUDGET
        self._outlook: StoppingForecast | None = None

    def tune(self) -> Ending:
        """Run trials until there are as many as the budget says, and until every race is over.

        Raises:
            NothingWorkedError: the first trials all failed.
            CannotRunHereError: runs fail for reasons that are not the configurations'.
        """
        self._store.recover(self._space)
        self._asker.forget()
        self._sameness = Equivalence(self._bench.alike)
        self.merge(self._store.trials())
        self._agenda.block = 1 + max((run.block for trial in self._trials.values() for run in trial.runs), default=-1)
        known = stored_stopping_forecast(self._store)
        if known is not None and known.holds(self._standings, self._study):
            self._outlook, self._ending = known, Ending.PAYS_NO_MORE
        self._store_settled()
        self._go_on()
        self._checkpoints.sweep(number for number, trial in self._trials.items() if trial.settled)
        for trial in self._trials.values():
            if not trial.settled and not trial.runs and trial.number not in self._busy:
                self._bench.display.line(f"trial {trial.number}: was interrupted, runs again")
        if self._budget.timeout_s is not None:
            self._ends_at = self._clock() + self._budget.timeout_s
        while True:
            self._meet()
            others = bool(self._elsewhere)
            while len(self._flights) < self._workers() and self._launch_next():
                others = others or bool(self._elsewhere)
            self._bench.check_time(idle=not self._flights)
            if not self._flights and not others and self._workers():
                self._store_settled()  # what waited for trials that did not come
                return self._ending
            self._ended(self._bench.executor.wait(_TICK_S))
            self._bench.display.update(self.status())

    @property
    def _trials(self) -> Mapping[int, TrialRecord]:
        return self._standings.trials

    @property
    def _elsewhere(self) -> Set[int]:
        """The trials of which another coordinator has a run in flight, after which more may follow."""
        return self._bench.coordinators.busy if self._bench.coordinators is not None else frozenset()

    @property
    def _busy(self) -> Set[int]:
        """The trials of which a run is in flight, here or elsewhere."""
        return self._flights.busy | self._elsewhere

    def merge(self, trials: Iterable[TrialRecord]) -> None:
        """Take note of trials as they are in storage, whoever made their runs; not of those that have a run here."""
        for trial in trials:
            if trial.number not in self._flights.busy:
                self._note(trial.lean)

    def _note(self, trial: TrialRecord) -> None:
        """Take note of a trial that is new, or no more as it was."""
        self._standings.update(trial)
        self._sameness.learn(trial)
        self._unobserved.add(trial.number)

    def _workers(self) -> int:
        """Return how many runs may go on now: the default configuration runs alone, and its answer is the reference."""
        most = self._bench.workers(self._budget.workers, len(self._flights))
        return self._bench.at_most(most if self._agenda.ready(self._standings) else min(most, 1))

    def _launch_next(self) -> bool:
        if self._flights.first_waiting is None and (ready := self._next()):
            self._flights.wait(ready)
        if (first := self._flights.first_waiting) is None:
            return False
        try:
            launched = self._bench.start(first.task, first.purpose, first.known)
        except TakenError:
            self._flights.drop_first()
            self._meet(now=True)
            return True
        if launched is not None:
            self._flights.launch(launched, self._bench.objective)
        return launched is not None

    def _meet(self, *, now: bool = False) -> None:
        """See what other coordinators have done."""
        coordinators = self._bench.coordinators
        if coordinators is not None and coordinators.look(when_due=not now):
            self._read_anew(surely=bool(coordinators.others))
            self._go_on()
            self._store_settled()

    def _read_anew(self, *, surely: bool = False) -> None:
        """Take note of what others have stored, if they have; `surely` also of what shows in no number."""
        if surely or self._asker.moved():
            self._asker.forget()
            self.merge(self._store.trials())

    def _go_on(self) -> None:
        """Go on with the runs that an earlier session left in a queue."""
        for leased in self._bench.inherit(self._store.runs()):
            purpose = leased.purpose
            trial = self._trials.get(purpose.trial if purpose.trial is not None and purpose.series.is_tuning else -1)
            if trial is None:
                continue
            self._bench.display.line(f"trial {trial.number}: goes on with a job of a session that has ended")
            segment = Segment(purpose.steps, purpose.of, self._metric) if purpose.steps and purpose.of else None
            step = Step(trial, segment=segment)
            lost = self._checkpoints.lost(trial.number, leased.name) if segment else ()
            self._agenda.starts(step, self._standings)
            answer, segment = self._reference(), segment and self._from_checkpoint(trial, segment, lost)
            task = self._bench.prepare(
                trial.number, trial.configuration, leased.name, reference=answer, segment=segment
            )
            self._flights.wait(Ready(step, task, purpose, lost), first=True)
            self._launch_next()

    def _next(self) -> Ready | None:
        if self._clock() >= self._ends_at:
            self._ending = Ending.TIMEOUT
            return None
        if self._nothing_to_do():
            return None
        step = self._agenda.next(self._standings, self._busy)
        if step is None and (self._agenda.ready(self._standings) or not self._trials):
            ask = self._agenda.next if self._propose() else self._agenda.idle
            step = ask(self._standings, self._busy)
        return self._prepare(step) if step else None

    def _nothing_to_do(self) -> bool:
        """Whether only the default configuration could be run again, for nobody's benefit."""
        return self._has_enough() and not self._standings.open and not self._agenda.deserving(self._standings)

    def _has_enough(self) -> bool:
        """Whether no further trial is to be proposed."""
        return len(self._trials) >= self._budget.most or (self._outlook is not None and self._outlook.stopped)

    def look_ahead(self, *, due: bool = False) -> StoppingForecast | None:
        """Return what more search would gain, and store it; None where nobody knows. A `due` look may end tuning."""
        if can_tell(len(self._trials), self._space.size):
            self._outlook = look_ahead(self._asker, self._observations(), self._standings, self._study, due=due)
        return self._outlook

    def _propose(self) -> bool:
        coordinators = self._bench.coordinators
        if coordinators is None or coordinators.alone:
            return self._proposed()
        with self._store.alone():
            # What others have proposed meanwhile is not proposed again.
            self._read_anew()
            return self._proposed()

    def _proposed(self) -> bool:
        if self._has_enough():
            return False
        size = self._space.size
        exhausted = size.exact and len(self._trials) >= size.value
        if self._budget.auto and not exhausted and is_due(len(self._trials), size):
            self.look_ahead(due=True)
            if self._has_enough():
                self._ending = Ending.PAYS_NO_MORE
                return False
        shows_nothing = self._sameness.judge(self._bench.display.line)
        proposed = None if exhausted else self._asker.ask(self._observations(), shows_nothing)
        if proposed is None:
            self._ending = Ending.EXHAUSTED
            return False
        self._note(proposed)
        return True

    def _observations(self) -> Mapping[int, Observation]:
        if self._unobserved:
            for number in self._unobserved if self._agenda.apart else self._trials:
                self._observed[number] = self._agenda.observation(self._trials[number], self._standings)
            self._unobserved.clear()
        return self._observed

    def _prepare(self, step: Step) -> Ready:
        trial, counts = step.trial, step.series.is_tuning
        self._agenda.starts(step, self._standings)
        place = str(RunId(trial=trial.number, number=step.segment.steps if step.segment else len(trial.runs)))
        segment, lost = self._leg(step, place) if step.segment else (None, ())
        task = self._bench.prepare(
            trial.number,
            trial.configuration,
            place if counts else self._bench.own(step.series),
            reference=self._reference(),
            cap=self._agenda.cap(trial, self._standings) if counts else None,
            segment=segment,
        )
        if step.series == WARM_UP:
            limit = min(WARM_UP_LIMIT_S, task.job.time_limit_s or WARM_UP_LIMIT_S)
            task = replace(task, job=replace(task.job, time_limit_s=limit))
        elif trial.state is State.CAPPED:
            self._note(replace(trial, settled=False))
        block = self._agenda.block
        until = (segment.steps, segment.of) if segment else (None, None)
        return Ready(step, task, Purpose(trial.configuration, trial.number, step.series, 0, block, *until), lost)

    def _leg(self, step: Step, place: str) -> tuple[Segment, Curve]:
        """Return the leg of a step with what it goes on from, and the curve of its runs that were killed."""
        assert step.segment is not None
        number, metric = step.trial.number, step.segment.metric
        lost = self._checkpoints.started(number, place, self._bench.objective, metric)
        return self._from_checkpoint(step.trial, step.segment, lost), lost

    def _from_checkpoint(self, trial: TrialRecord, segment: Segment, lost: Curve = ()) -> Segment:
        before = curve_of(trial.runs[-1].outcome) if trial.runs else ()
        best = best_until((*before, *lost), segment.steps, segment.metric)
        return replace(segment, checkpoint=self._checkpoints.folder(trial.number), best=best)

    def _reference(self) -> Answer | None:
        """Return the answer that others must agree with: the baseline's, or the first that there is."""
        found = self._standings.baseline or next((t for t in self._trials.values() if t.complete), None)
        return found.answer if found else None

    def _ended(self, ended: Sequence[tuple[Task, Outcome]]) -> None:
        """Take note of runs that ended: all are on disk before anything is made of any, and settled together."""
        landed = [self._landed(self._flights.of(task), outcome) for task, outcome in ended]
        whole = [(flight, run) for flight, run in landed if not run.outcome.retryable]
        places = [flight.launched.task.job.name for flight, _ in whole]
        self._store.add_runs([run for _, run in whole], places)
        try:
            for flight, run in landed:
                self._flights.land(flight)
                if run.outcome.retryable:
                    self._retry(flight, run.outcome)
                else:
                    self._count(flight.step, run)
        finally:
            self._store_settled()

    def _landed(self, flight: Flight, outcome: Outcome) -> tuple[Flight, Run]:
        step = flight.step
        if step.segment is not None:
            before = self._trials[step.trial.number].runs
            outcome = continued(before[-1].outcome if before else None, outcome, step.segment, flight.lost)
        return flight, self._bench.ended(flight.launched, outcome)

    def _count(self, step: Step, run: Run) -> None:
        """Go on from a run that is stored."""
        self._machine_faults = 0
        best_before = self._standings.incumbent
        if not step.series.is_tuning:
            self._bench.display.line(f"{step.series}: {self._telling.said(run.outcome)}, does not count")
        else:
            self._note(self._trials[step.trial.number].with_run(run.lean))
        self._agenda.ended(step, self._standings)
        if step.series.is_tuning:
            self._bench.display.line(self._telling.ran(self._trials[step.trial.number], run.outcome))
        self._settle()
        best = self._standings.incumbent
        if best is not None and best_before is not None and best.number != best_before.number:
            self._bench.display.line(f"best so far: trial {best.number}, {self._telling.value(best)}")
        self._check_hope()

    def _settle(self) -> None:
        """Close the races that are over; closing one may change the incumbent of the next."""
        busy = self._busy
        for number in [one for one in self._standings.open if one not in busy]:
            trial = self._trials[number]
            if self._agenda.is_settled(trial, self._standings, busy):
                self._closed[number] = self._agenda.observation(trial, self._standings)
                self._note(replace(trial, settled=True))

    def _store_settled(self) -> None:
        """Store what the trials are worth whose races are over; then nothing else of them is needed."""
        self._settle()
        self._store.settle_all(self._closed)
        for number in self._closed:
            self._checkpoints.forget(number)
        self._closed.clear()

    def _retry(self, flight: Flight, outcome: Outcome) -> None:
        """Run again; or leave the trial open, as one that was interrupted: its configuration has shown nothing."""
        number, task, lost = flight.step.trial.number, flight.launched.task, flight.lost
        if task.segment is not None:
            lost = self._checkpoints.started(number, task.job.name, self._bench.objective, task.segment.metric)
        again = self._bench.again(flight.launched, outcome)
        if again is not None:
            self._bench.display.line(f"trial {number}: {outcome.message}; tried again")
            self._flights.wait(Ready(flight.step, again, flight.launched.purpose, lost))
            return
        self._machine_faults += 1
        self._bench.release(flight.launched)
        self._agenda.leave_alone(flight.step.trial)
        self._bench.display.line(f"trial {number}: could not be run: {outcome.message}")
        if self._machine_faults >= _BROKEN_AFTER:
            msg = (
                f"{self._machine_faults} trials in a row could not be run, whatever their configuration; "
                f"the last: {outcome.message}\nmend that, then use the same command again"
            )
            raise CannotRunHereError(msg)

    def _check_hope(self) -> None:
        if self._standings.nothing_worked >= self._budget.give_up_after:
            raise NothingWorkedError(why_nothing_worked([trial for trial in self._trials.values() if trial.runs]))

    def status(self) -> Status:
        """Return how the study stands now."""
        standings, budget = self._standings, self._budget
        left_s = None
        if standings.settled and not budget.auto:
            left_s = standings.spent_s / standings.settled * (budget.most - standings.settled) / budget.workers
        running = self._flights.shown()
        return Status(
            standings=standings,
            budget=budget.most,
            finished=standings.settled,
            running=running,
            left_s=left_s,
            open_ended=budget.auto,
            more=len(self._flights) - len(running),
        )
