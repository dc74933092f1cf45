"""The tuning loop: runs the trials of a study from the first to the last."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import count
from pathlib import Path

from autotune.comparison.findings import kept_limits
from autotune.comparison.time_left import tuning_left
from autotune.coordination.neighbours import what_to_do
from autotune.coordination.run_manager import RunManager
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.display.console import Status
from autotune.display.messages import retry_reason
from autotune.errors import CannotRunHereError
from autotune.execution.segments import Curve, Segment, best_until, curve_of, join_segments
from autotune.execution.task import Task, with_checked_answer
from autotune.records.outcome import Outcome
from autotune.records.series import WARM_UP, RunId
from autotune.records.study import Purpose, Run, State, TrialRecord
from autotune.results.pareto import tradeoff_metrics
from autotune.results.time_doubt import time_doubt
from autotune.scheduling.checkpoints import Checkpoints
from autotune.scheduling.equivalence import Equivalence
from autotune.scheduling.paces import Paces
from autotune.scheduling.repeats import WARM_UP_LIMIT_S, RepeatScheduler, Step
from autotune.scheduling.run_scheduler import RunScheduler
from autotune.scheduling.stopping import StoppingForecast, can_forecast, is_due, look_ahead, stored_stopping_forecast
from autotune.scheduling.successive_halving import SuccessiveHalvingScheduler, extend_stored_brackets
from autotune.search.asker import Asker
from autotune.statistics.front_race import FrontRace
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.readable_study import stored_verdict
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from autotune.tuning.give_up import check_give_up
from autotune.tuning.leaders import Leaders
from autotune.tuning.retry import describe_reopened
from autotune.tuning.runs_in_flight import RunsInFlight
from launchers import Job
from objectives import registry
from objectives.base import Answer
from spaces import Space

_TICK_S = 0.25
# After this many failures in a row that are not the configuration's, the machine is at fault.
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
        """Make a loop that runs, with `manager`, the trials that `asker` proposes for `study`."""
        self._asker = asker
        self._store = store = asker.store
        self._space = asker.space
        self._manager = manager
        self._study = study
        self._budget = study.budget
        self._clock = clock or manager.gate.clock
        self._metric = store.definition.target
        # Not read again at each run: a storage that is away would end the session.
        self._is_replay = store.definition.replay
        self._makes_runs = registry.runs(study.objective) == "launched"
        self._checkpoints = Checkpoints(manager.factory.folder, store.mark)
        self._scheduler = scheduler_of(store, study, self._space, in_queue=bool(manager.registry.scheduler))
        limits = kept_limits(store, study.repeats.statistic)
        asker.sampler.set_limits(limits.limits)
        self._standings = Standings({}, self._metric, study.repeats.statistic, stored_verdict(store), limits)
        self._leaders = Leaders.of(self._standings, store.definition)
        self._messages = self._leaders.messages
        self._sameness = Equivalence(None)
        # The observation of each trial, and the trials whose observation is out of date.
        self._observed: dict[int, Observation] = {}
        self._unobserved: set[int] = set()
        # The trials whose race is over and that are not yet stored as settled.
        self._closed: dict[int, Observation] = {}
        self._in_flight = RunsInFlight()
        # Trials in a row that could not be run.
        self._faulty: set[int] = set()
        self._is_time_doubted = False
        self._ends_at = float("inf")
        self._ending = Ending.BUDGET
        self._outlook: StoppingForecast | None = None

    def tune(self) -> Ending:
        """Run trials until the budget is used and every race is over.

        Raises:
            NothingWorkedError: The default failed, or the first trials all did.
            CannotRunHereError: Runs fail for reasons other than their configuration.
        """
        self._store.recover(self._space)
        self._asker.forget()
        self._sameness = Equivalence(self._manager.factory.alike, self._manager.factory.memory)
        self.merge(self._store.trials())
        self._is_time_doubted = time_doubt(self._trials.values(), self._metric) is not None
        self._scheduler.block = 1 + max(
            (run.block for trial in self._trials.values() for run in trial.runs), default=-1
        )
        known = stored_stopping_forecast(self._store)
        if known is not None and known.holds(self._standings, self._study):
            self._outlook, self._ending = known, Ending.PAYS_NO_MORE
        self._store_settled()
        self._resume_jobs()
        self._checkpoints.sweep(number for number, trial in self._trials.items() if trial.settled)
        for line in describe_reopened(self._trials.values(), self._store.runs(), self._in_flight.busy):
            self._manager.display.line(line)
        if self._budget.timeout_s is not None:
            self._ends_at = self._clock() + self._budget.timeout_s
        while True:
            while (room := self._workers() - len(self._in_flight)) > 0 and self._launch_next(room):
                pass
            self._manager.check(idle=not self._in_flight)
            if not self._in_flight and self._workers():
                self._store_settled()  # trials that waited for others, which never came
                return self._ending
            self._collect(self._manager.executor.wait(_TICK_S))
            self._manager.display.update(self.status())

    @property
    def _trials(self) -> Mapping[int, TrialRecord]:
        return self._standings.trials

    def merge(self, trials: Iterable[TrialRecord]) -> None:
        """Update the trials from storage, whoever made their runs; skip those with a run in flight."""
        for trial in trials:
            if trial.number not in self._in_flight.busy:
                self._update_trial(trial.lean)

    def _update_trial(self, trial: TrialRecord) -> None:
        """Update a trial that is new or has changed."""
        self._standings.update(trial)
        self._sameness.learn(trial)
        self._unobserved.add(trial.number)

    def _workers(self) -> int:
        """Return how many runs may be in flight now.

        The default configuration runs alone, because its answer is the reference of all others. In a queue its first
        runs wait together.
        """
        most = self._manager.executor.max_in_flight(self._budget.workers, len(self._in_flight))
        is_open = self._scheduler.together or self._scheduler.is_ready(self._standings)
        return self._manager.gate.at_most(most if is_open else min(most, 1))

    def _launch_next(self, room: int = 1) -> bool:
        """Launch the next runs, at most `room`; return whether any started."""
        together = self._manager.executor.max_starts(room)
        while (missing := together - len(self._in_flight.first_waiting(together))) and (planned := self._next(missing)):
            self._in_flight.wait(planned)
        started = self._manager.start_all(self._in_flight.first_waiting(together))
        for run in started:
            self._in_flight.start(run, self._manager.factory.objective)
        return bool(started)

    def _resume_jobs(self) -> None:
        """Resume the runs that an earlier session left in a queue."""
        self._manager.neighbours.load(self._store.runs())
        for lease in self._manager.registry.left:
            purpose = lease.purpose
            trial = self._trials.get(purpose.trial if purpose.trial is not None and purpose.series.is_tuning else -1)
            if trial is None:
                continue
            self._manager.display.line(f"trial {trial.number}: resumes a job of an earlier session")
            segment = Segment(purpose.steps, purpose.of, self._metric) if purpose.steps and purpose.of else None
            lost = self._checkpoints.curve_of_killed_runs(trial.number, lease.name) if segment else ()
            self._scheduler.start(Step(trial, segment=segment), self._standings)
            answer, segment = self._reference(), segment and self._from_checkpoint(trial, segment, lost)
            purpose = replace(purpose, configuration=trial.configuration)
            planned = self._manager.prepare(trial.number, purpose, lease.name, reference=answer, segment=segment)
            self._in_flight.wait(replace(planned, lost=lost), first=True)
            self._launch_next()

    def _next(self, most: int) -> PlannedRun | None:
        if self._clock() >= self._ends_at:
            self._ending = Ending.TIMEOUT
            step = self._scheduler.rest_of_default(self._standings, self._in_flight.busy)
            return self._prepare(step) if step else None
        if self._is_finished():
            return None
        step = self._scheduler.next(self._standings, self._in_flight.busy)
        if step is None and (self._scheduler.is_ready(self._standings) or not self._trials):
            ask = self._scheduler.next if self._propose(most) else self._scheduler.next_when_idle
            step = ask(self._standings, self._in_flight.busy)
        return self._prepare(step) if step else None

    def _is_finished(self) -> bool:
        """Whether only the default could run again, and no other trial would gain from that."""
        return self._has_enough() and not self._standings.open and not self._scheduler.deserving(self._standings)

    def _has_enough(self) -> bool:
        """Whether no further trial is to be proposed."""
        return len(self._trials) >= self._budget.most or (self._outlook is not None and self._outlook.stopped)

    def look_ahead(self, *, due: bool = False) -> StoppingForecast | None:
        """Forecast the gain of more search, and store it; None if that is unknown. A `due` forecast may end tuning."""
        if not self._study.limits and can_forecast(len(self._trials), self._space.size):
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
        display = self._manager.display
        shows_nothing = self._sameness.judge(display.line, display.detail)
        most = 1 if self._budget.auto else min(most, self._budget.most - len(self._trials))
        proposed = [] if exhausted else self._asker.ask_all(most, self._observations(), shows_nothing)
        if not proposed:
            self._ending = Ending.EXHAUSTED
        for trial in proposed:
            self._update_trial(trial)
        return bool(proposed)

    def _observations(self) -> Mapping[int, Observation]:
        if self._unobserved:
            for number in self._unobserved:
                self._observed[number] = self._scheduler.observation(self._trials[number], self._standings)
            self._unobserved.clear()
        return self._observed

    def _prepare(self, step: Step) -> PlannedRun:
        trial, counts = step.trial, step.series.is_tuning
        self._scheduler.start(step, self._standings)
        run_name = self._run_name(step)
        segment, lost = self._segment(step, run_name) if step.segment else (None, ())
        planned = self._manager.prepare(
            trial.number,
            Purpose(trial.configuration, trial.number, step.series, 0, self._scheduler.block, *step.reaches),
            run_name,
            reference=self._reference(),
            cap=self._scheduler.cap(trial, self._standings) if counts else None,
            segment=segment,
        )
        if segment:
            self._checkpoints.note_progress_file(trial.number, planned.task.job.progress_file)
        if counts and trial.state is State.CAPPED:
            self._update_trial(replace(trial, settled=False))
        job = limit_job(planned.task.job, step, self._standings, caps=self._study.repeats.caps)
        planned = replace(planned, task=replace(planned.task, job=job))
        return replace(planned, lost=lost)

    def _run_name(self, step: Step) -> str:
        """Return the name of a step's run; each of a trial's runs that are in flight together has its own."""
        trial, name = step.trial, step.run_name
        if trial.number not in self._in_flight.busy and not self._scheduler.together:
            return name
        taken = self._in_flight.names | {Path(run.job.get("folder", "")).name for run in trial.runs}
        numbers = count(len(trial.runs))
        return next(name for number in numbers if (name := str(RunId(trial=trial.number, number=number))) not in taken)

    def _segment(self, step: Step, run_name: str) -> tuple[Segment, Curve]:
        """Return the segment of a step with its checkpoint, and the curve of its runs that were killed."""
        assert step.segment is not None
        number, metric = step.trial.number, step.segment.metric
        lost = self._checkpoints.note_start(number, run_name, self._manager.factory.objective, metric)
        return self._from_checkpoint(step.trial, step.segment, lost), lost

    def _from_checkpoint(self, trial: TrialRecord, segment: Segment, lost: Curve = ()) -> Segment:
        before = curve_of(trial.runs[-1].outcome) if trial.runs else ()
        best = best_until((*before, *lost), segment.steps, segment.metric)
        return replace(segment, checkpoint=self._checkpoints.folder(trial.number), best=best)

    def _reference(self) -> Answer | None:
        """Return the answer that others must agree with: the baseline's, or else the first known one."""
        reference = self._standings.baseline or next((t for t in self._trials.values() if t.complete), None)
        return reference.answer if reference and self._messages.compares else None

    def _collect(self, ended: Sequence[tuple[Task, Outcome]]) -> None:
        """Process runs that ended: store all of them first, then continue from each, and settle them together."""
        finished: list[tuple[RunInFlight, Run]] = []
        for task, outcome in ended:
            answers = (run.outcome.answer for _, run in finished if run.outcome.complete)
            reference = self._reference() or (next(answers, None) if self._messages.compares else None)
            finished.append(self._finish(self._in_flight.of(task), outcome, reference))
        whole = [(before, run) for before, run in finished if run.is_kept]
        self._manager.store(self._store, whole)
        try:
            for before, run in finished:
                self._in_flight.end(before)
                if run.outcome.retryable:
                    self._retry(before, run.outcome)
                else:
                    self._count(run)
        finally:
            self._store_settled()

    def _finish(self, run: RunInFlight, outcome: Outcome, reference: Answer | None) -> tuple[RunInFlight, Run]:
        if run.task.reference is None and self._scheduler.together:
            # There was no reference when the default's first runs started together.
            outcome = with_checked_answer(outcome, reference)
        if run.task.segment is not None:
            before = self._trials[run.task.key].runs
            outcome = join_segments(before[-1].outcome if before else None, outcome, run.task.segment, run.planned.lost)
        return run, self._manager.finish(run, outcome)

    def _count(self, run: Run) -> None:
        """Continue from a run that is stored."""
        self._faulty.clear()
        leaders_before = self._leaders.numbers()
        assert run.trial is not None
        if run.series.is_tuning:
            self._update_trial(self._trials[run.trial].with_run(run.lean))
            trial = self._trials[run.trial]
            line, is_news = self._messages.run_ended(trial, run.outcome), self._messages.is_news(trial, run.outcome)
        else:
            line, is_news = self._messages.uncounted_run(run), run.outcome.failure is not None
        self._scheduler.finish(run, self._standings)
        display = self._manager.display
        (display.line if is_news else display.detail)(line)
        self._doubt_time(run)
        self._settle()
        for news in self._leaders.news(leaders_before):
            display.line(news)
        check_give_up(self._standings, self._budget.give_up_after, launched=self._makes_runs)

    def _doubt_time(self, run: Run) -> None:
        """Print a doubt about the time of a run, if no earlier run gave reason to."""
        if run.trial is None or self._is_time_doubted or self._is_replay:
            return
        if doubt := time_doubt([self._trials[run.trial]], self._metric):
            self._is_time_doubted = True
            self._manager.display.line(f"doubt: {doubt}")

    def _settle(self) -> None:
        """Close the races that are over; closing one may change the incumbent of the next."""
        busy = self._in_flight.busy
        for number in [open_number for open_number in self._standings.open if open_number not in busy]:
            trial = self._trials[number]
            if self._scheduler.is_settled(trial, self._standings, busy):
                self._closed[number] = self._scheduler.observation(trial, self._standings)
                self._update_trial(replace(trial, settled=True))

    def _store_settled(self) -> None:
        """Store the observations of the trials whose races are over, and remove their checkpoints."""
        self._settle()
        self._store.settle_all(self._closed)
        for number in self._closed:
            self._checkpoints.forget(number)
        self._closed.clear()

    def _retry(self, run: RunInFlight, outcome: Outcome) -> None:
        """Run again; after too many tries leave the trial open, because its configuration is not at fault."""
        number, task, lost = run.task.key, run.task, run.planned.lost
        if task.segment is not None:
            lost = self._checkpoints.note_start(number, run.name, self._manager.factory.objective, task.segment.metric)
        again = self._manager.plan_retry(run, outcome)
        if again is not None:
            self._manager.display.line(f"trial {number}: {retry_reason(outcome)}; runs again")
            self._in_flight.wait(replace(again, lost=lost))
            return
        self._faulty.add(number)
        self._manager.give_up(run)
        self._scheduler.leave_alone(self._trials[number])
        self._manager.display.line(f"trial {number}: could not be run: {outcome.message}")
        if len(self._faulty) >= _BROKEN_AFTER:
            msg = (
                f"{len(self._faulty)} trials in a row could not be run, whatever their configuration; "
                f"the last: {outcome.message}\n{what_to_do(outcome)}, then use the same command again"
            )
            raise CannotRunHereError(msg)

    def status(self) -> Status:
        """Return the current state of the study, for a panel."""
        standings, budget = self._standings, self._budget
        left, running = (
            tuning_left(standings, self._study),
            self._in_flight.read_state(self._manager.executor.why_waits),
        )
        return Status(
            standings=standings,
            budget=budget.most,
            finished=standings.settled,
            running=running,
            left_s=left.least_s if left is not None else None,
            left_most_s=left.most_s if left is not None else None,
            open_ended=budget.auto,
            more=len(self._in_flight) - len(running),
            subject=self._leaders.subject(),
        )


def limit_job(job: Job, step: Step, standings: Standings, *, caps: bool) -> Job:
    """Return the job of a step with the time limit of a warm-up or, with `caps`, the limit on memory.

    A run beyond that memory has lost. The default has no such cap: it is measured to its end, whatever it breaks.
    """
    if step.series == WARM_UP:
        return replace(job, time_limit_s=min(WARM_UP_LIMIT_S, job.time_limit_s or WARM_UP_LIMIT_S))
    if not caps or step.trial is standings.default:
        return job
    return replace(job, memory_limit_bytes=standings.limits.memory_bytes)


def scheduler_of(store: StudyStore, study: StudyFile, space: Space, *, in_queue: bool = False) -> RunScheduler:
    """Return what decides which run comes next: races, or rungs if the program works in steps.

    Runs that are jobs `in_queue` of a batch system need no warm-up: that of one node warms no other.
    """
    definition = store.definition
    if study.stopping is not None:
        return SuccessiveHalvingScheduler(
            study.stopping, definition.target, extend_stored_brackets(store, study, study.stopping)
        )
    metrics = tradeoff_metrics(definition)
    front = FrontRace(metrics, study.repeats.statistic) if metrics else None
    repeats = study.repeats if study.decisions is None else study.repeats.for_a_table
    if in_queue:
        repeats = repeats.model_copy(update={"warm_up_runs": 0})
    return RepeatScheduler(repeats, front, definition.mixed_inputs, paces=Paces(space), together=in_queue)
