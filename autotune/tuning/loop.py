"""The tuning loop: from the first trial to the last."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum

from autotune.comparison.findings import kept_limits
from autotune.comparison.time_left import tuning_left
from autotune.coordination.neighbours import what_to_do
from autotune.coordination.run_manager import RunManager
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.display.console import Status
from autotune.errors import CannotRunHereError
from autotune.execution.segments import Curve, Segment, best_until, curve_of, join_segments
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.records.series import WARM_UP
from autotune.records.study import Purpose, Run, State, TrialRecord
from autotune.scheduling.checkpoints import Checkpoints
from autotune.scheduling.equivalence import Equivalence
from autotune.scheduling.repeats import WARM_UP_LIMIT_S, Step
from autotune.scheduling.stopping import StoppingForecast, can_tell, is_due, look_ahead, stored_stopping_forecast
from autotune.search.asker import Asker
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.readable import stored_verdict
from autotune.studyfile import StudyFile
from autotune.tuning.hope import check_hope
from autotune.tuning.in_flight import RunsInFlight
from autotune.tuning.leading import Leading
from autotune.tuning.retry import announced
from autotune.tuning.schedulers import scheduler_of
from launchers import Job
from objectives import registry
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
        manager: RunManager,
        study: StudyFile,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Run with `manager` what `asker` proposes, as `study` says, once `tune` is called."""
        self._asker = asker
        self._store = store = asker.store
        self._space = asker.space
        self._manager = manager
        self._study = study
        self._budget = study.budget
        self._clock = clock or manager.gate.clock
        self._metric = store.definition.target
        self._launched = registry.runs(study.objective) == "launched"
        self._checkpoints = Checkpoints(manager.factory.folder, store.mark)
        self._scheduler = scheduler_of(store, study, self._space)
        limits = kept_limits(store, study.repeats.statistic)
        asker.sampler.set_limits(limits.limits)
        self._standings = Standings({}, self._metric, study.repeats.statistic, stored_verdict(store), limits)
        self._leading = Leading.of(self._standings, store.definition)
        self._telling = self._leading.telling
        self._sameness = Equivalence(None)
        # What the sampler knows of the trials, and the trials with more to know.
        self._observed: dict[int, Observation] = {}
        self._unobserved: set[int] = set()
        # The trials whose races are over, not stored as settled yet.
        self._closed: dict[int, Observation] = {}
        self._in_flight = RunsInFlight()
        self._machine_faults = 0
        self._ends_at = float("inf")
        self._ending = Ending.BUDGET
        self._outlook: StoppingForecast | None = None

    def tune(self) -> Ending:
        """Run trials until there are as many as the budget says, and until every race is over.

        Raises:
            NothingWorkedError: the default failed, or the first trials all did.
            CannotRunHereError: runs fail for reasons that are not the configurations'.
        """
        self._store.recover(self._space)
        self._asker.forget()
        self._sameness = Equivalence(self._manager.factory.alike, self._manager.factory.memory)
        self.merge(self._store.trials())
        self._scheduler.block = 1 + max(
            (run.block for trial in self._trials.values() for run in trial.runs), default=-1
        )
        known = stored_stopping_forecast(self._store)
        if known is not None and known.holds(self._standings, self._study):
            self._outlook, self._ending = known, Ending.PAYS_NO_MORE
        self._store_settled()
        self._resume_jobs()
        self._checkpoints.sweep(number for number, trial in self._trials.items() if trial.settled)
        for said in announced(self._trials.values(), self._store.runs(), self._in_flight.busy):
            self._manager.display.line(said)
        if self._budget.timeout_s is not None:
            self._ends_at = self._clock() + self._budget.timeout_s
        while True:
            while (room := self._workers() - len(self._in_flight)) > 0 and self._launch_next(room):
                pass
            self._manager.check(idle=not self._in_flight)
            if not self._in_flight and self._workers():
                self._store_settled()  # what waited for trials that did not come
                return self._ending
            self._ended(self._manager.executor.wait(_TICK_S))
            self._manager.display.update(self.status())

    @property
    def _trials(self) -> Mapping[int, TrialRecord]:
        return self._standings.trials

    def merge(self, trials: Iterable[TrialRecord]) -> None:
        """Take note of trials as they are in storage, whoever made their runs; not of those with a run in flight."""
        for trial in trials:
            if trial.number not in self._in_flight.busy:
                self._note(trial.lean)

    def _note(self, trial: TrialRecord) -> None:
        """Take note of a trial that is new, or no more as it was."""
        self._standings.update(trial)
        self._sameness.learn(trial)
        self._unobserved.add(trial.number)

    def _workers(self) -> int:
        """Return how many runs may go on now: the default configuration runs alone, and its answer is the reference."""
        most = self._manager.executor.max_in_flight(self._budget.workers, len(self._in_flight))
        return self._manager.gate.at_most(most if self._scheduler.ready(self._standings) else min(most, 1))

    def _launch_next(self, room: int = 1) -> bool:
        """Launch what is launched together, at most `room` runs; return whether anything became of one."""
        together = self._manager.executor.max_starts(room)
        while (missing := together - len(self._in_flight.first_waiting(together))) and (planned := self._next(missing)):
            self._in_flight.wait(planned)
        started = self._manager.start_all(self._in_flight.first_waiting(together))
        for run in started:
            self._in_flight.start(run, self._manager.factory.objective)
        return bool(started)

    def _resume_jobs(self) -> None:
        """Resume the runs that an earlier session left in a queue."""
        self._manager.neighbours.know(self._store.runs())
        for lease in self._manager.registry.left:
            purpose = lease.purpose
            trial = self._trials.get(purpose.trial if purpose.trial is not None and purpose.series.is_tuning else -1)
            if trial is None:
                continue
            self._manager.display.line(f"trial {trial.number}: goes on with a job of a session that has ended")
            segment = Segment(purpose.steps, purpose.of, self._metric) if purpose.steps and purpose.of else None
            lost = self._checkpoints.lost(trial.number, lease.name) if segment else ()
            self._scheduler.starts(Step(trial, segment=segment), self._standings)
            answer, segment = self._reference(), segment and self._from_checkpoint(trial, segment, lost)
            purpose = replace(purpose, configuration=trial.configuration)
            planned = self._manager.prepare(trial.number, purpose, lease.name, reference=answer, segment=segment)
            self._in_flight.wait(replace(planned, lost=lost), first=True)
            self._launch_next()

    def _next(self, most: int) -> PlannedRun | None:
        if self._clock() >= self._ends_at:
            self._ending = Ending.TIMEOUT
            return None
        if self._nothing_to_do():
            return None
        step = self._scheduler.next(self._standings, self._in_flight.busy)
        if step is None and (self._scheduler.ready(self._standings) or not self._trials):
            ask = self._scheduler.next if self._propose(most) else self._scheduler.idle
            step = ask(self._standings, self._in_flight.busy)
        return self._prepare(step) if step else None

    def _nothing_to_do(self) -> bool:
        """Whether only the default configuration could be run again, for nobody's benefit."""
        return self._has_enough() and not self._standings.open and not self._scheduler.deserving(self._standings)

    def _has_enough(self) -> bool:
        """Whether no further trial is to be proposed."""
        return len(self._trials) >= self._budget.most or (self._outlook is not None and self._outlook.stopped)

    def look_ahead(self, *, due: bool = False) -> StoppingForecast | None:
        """Return what more search would gain, and store it; None where nobody knows. A `due` look may end tuning."""
        if not self._study.limits and can_tell(len(self._trials), self._space.size):
            self._outlook = look_ahead(self._asker, self._observations(), self._standings, self._study, due=due)
        return self._outlook

    def _propose(self, most: int) -> bool:
        if self._has_enough():
            return False
        size = self._space.size
        exhausted = size.exact and len(self._trials) >= size.value
        if self._budget.auto and not exhausted and is_due(len(self._trials), size):
            self.look_ahead(due=True)
            if self._has_enough():
                self._ending = Ending.PAYS_NO_MORE
                return False
        shows_nothing = self._sameness.judge(self._manager.display.line)
        most = 1 if self._budget.auto else min(most, self._budget.most - len(self._trials))
        proposed = [] if exhausted else self._asker.ask_all(most, self._observations(), shows_nothing)
        if not proposed:
            self._ending = Ending.EXHAUSTED
        for trial in proposed:
            self._note(trial)
        return bool(proposed)

    def _observations(self) -> Mapping[int, Observation]:
        if self._unobserved:
            for number in self._unobserved if self._scheduler.apart else self._trials:
                self._observed[number] = self._scheduler.observation(self._trials[number], self._standings)
            self._unobserved.clear()
        return self._observed

    def _prepare(self, step: Step) -> PlannedRun:
        trial, counts = step.trial, step.series.is_tuning
        self._scheduler.starts(step, self._standings)
        run_name = step.run_name
        segment, lost = self._leg(step, run_name) if step.segment else (None, ())
        planned = self._manager.prepare(
            trial.number,
            Purpose(trial.configuration, trial.number, step.series, 0, self._scheduler.block, *step.reaches),
            run_name,
            reference=self._reference(),
            cap=self._scheduler.cap(trial, self._standings) if counts else None,
            segment=segment,
        )
        if counts and trial.state is State.CAPPED:
            self._note(replace(trial, settled=False))
        job = limited_job(planned.task.job, step, self._standings, caps=self._study.repeats.caps)
        planned = replace(planned, task=replace(planned.task, job=job))
        return replace(planned, lost=lost)

    def _leg(self, step: Step, run_name: str) -> tuple[Segment, Curve]:
        """Return the segment of a step with what it goes on from, and the curve of its runs that were killed."""
        assert step.segment is not None
        number, metric = step.trial.number, step.segment.metric
        lost = self._checkpoints.started(number, run_name, self._manager.factory.objective, metric)
        return self._from_checkpoint(step.trial, step.segment, lost), lost

    def _from_checkpoint(self, trial: TrialRecord, segment: Segment, lost: Curve = ()) -> Segment:
        before = curve_of(trial.runs[-1].outcome) if trial.runs else ()
        best = best_until((*before, *lost), segment.steps, segment.metric)
        return replace(segment, checkpoint=self._checkpoints.folder(trial.number), best=best)

    def _reference(self) -> Answer | None:
        """Return the answer that others must agree with: the baseline's, or the first that there is."""
        reference = self._standings.baseline or next((t for t in self._trials.values() if t.complete), None)
        return reference.answer if reference and self._telling.compares else None

    def _ended(self, ended: Sequence[tuple[Task, Outcome]]) -> None:
        """Take note of runs that ended: all are on disk before anything is made of any, and settled together."""
        landed = [self._landed(self._in_flight.of(task), outcome) for task, outcome in ended]
        whole = [(before, run) for before, run in landed if run.is_kept]
        self._manager.store(self._store, whole)
        try:
            for before, run in landed:
                self._in_flight.end(before)
                if run.outcome.retryable:
                    self._retry(before, run.outcome)
                else:
                    self._count(run)
        finally:
            self._store_settled()

    def _landed(self, run: RunInFlight, outcome: Outcome) -> tuple[RunInFlight, Run]:
        if run.task.segment is not None:
            before = self._trials[run.task.key].runs
            outcome = join_segments(before[-1].outcome if before else None, outcome, run.task.segment, run.planned.lost)
        return run, self._manager.ended(run, outcome)

    def _count(self, run: Run) -> None:
        """Go on from a run that is stored."""
        self._machine_faults = 0
        led_before = self._leading.numbers()
        assert run.trial is not None
        if run.series.is_tuning:
            self._note(self._trials[run.trial].with_run(run.lean))
            said = self._telling.run_ended(self._trials[run.trial], run.outcome)
        else:
            said = self._telling.uncounted_run(run)
        self._scheduler.ended(run, self._standings)
        self._manager.display.line(said)
        self._settle()
        for news in self._leading.news(led_before):
            self._manager.display.line(news)
        check_hope(self._standings, self._budget.give_up_after, launched=self._launched)

    def _settle(self) -> None:
        """Close the races that are over; closing one may change the incumbent of the next."""
        busy = self._in_flight.busy
        for number in [open_number for open_number in self._standings.open if open_number not in busy]:
            trial = self._trials[number]
            if self._scheduler.is_settled(trial, self._standings, busy):
                self._closed[number] = self._scheduler.observation(trial, self._standings)
                self._note(replace(trial, settled=True))

    def _store_settled(self) -> None:
        """Store what the trials are worth whose races are over; then nothing else of them is needed."""
        self._settle()
        self._store.settle_all(self._closed)
        for number in self._closed:
            self._checkpoints.forget(number)
        self._closed.clear()

    def _retry(self, run: RunInFlight, outcome: Outcome) -> None:
        """Run again; or leave the trial open, as one that was interrupted: its configuration has shown nothing."""
        number, task, lost = run.task.key, run.task, run.planned.lost
        if task.segment is not None:
            lost = self._checkpoints.started(number, run.name, self._manager.factory.objective, task.segment.metric)
        again = self._manager.again(run, outcome)
        if again is not None:
            self._manager.display.line(f"trial {number}: {outcome.message}; tried again")
            self._in_flight.wait(replace(again, lost=lost))
            return
        self._machine_faults += 1
        self._manager.give_up(run)
        self._scheduler.leave_alone(self._trials[number])
        self._manager.display.line(f"trial {number}: could not be run: {outcome.message}")
        if self._machine_faults >= _BROKEN_AFTER:
            msg = (
                f"{self._machine_faults} trials in a row could not be run, whatever their configuration; "
                f"the last: {outcome.message}\n{what_to_do(outcome)}, then use the same command again"
            )
            raise CannotRunHereError(msg)

    def status(self) -> Status:
        """Return how the study stands now."""
        standings, budget = self._standings, self._budget
        left, running = tuning_left(standings, self._study), self._in_flight.shown(self._manager.executor.why_waits)
        return Status(
            standings=standings,
            budget=budget.most,
            finished=standings.settled,
            running=running,
            left_s=left.least_s if left is not None else None,
            left_most_s=left.most_s if left is not None else None,
            open_ended=budget.auto,
            more=len(self._in_flight) - len(running),
            subject=self._leading.subject(),
        )


def limited_job(job: Job, step: Step, standings: Standings, *, caps: bool) -> Job:
    """Return the job of a step within the time of a warm-up, and with `caps` within the memory that is limited.

    A run that goes beyond that memory has lost. The default is measured to its end, whatever it breaks.
    """
    if step.series == WARM_UP:
        return replace(job, time_limit_s=min(WARM_UP_LIMIT_S, job.time_limit_s or WARM_UP_LIMIT_S))
    if not caps or step.trial is standings.default:
        return job
    return replace(job, memory_limit_bytes=standings.limits.memory_bytes)
