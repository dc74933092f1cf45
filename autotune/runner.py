"""The study runner: the coordinator's loop from the first trial to the last."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from statistics import fmean

from autotune.cores import CorePool
from autotune.display import Display, Running, Status, shown
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.executor import Executor
from autotune.folders import fresh_folder
from autotune.outcome import Outcome
from autotune.records import TrialRecord, baseline, default_trial, incumbent, speed_up
from autotune.search.store import StudyStore
from autotune.studyfile import BudgetSection
from autotune.trial import Task, describe_job
from launchers import STDOUT, LineReader
from launchers.mpi import MpiFlavour
from objectives.base import Context, Objective, Progress, ProgressReader
from spaces import Configuration, Space

_TICK_S = 0.25
# That many trials in a row without a working machine under them: it is the machine.
_BROKEN_AFTER = 3


class Ending(Enum):
    """Why a session stopped tuning."""

    BUDGET = "the budget is used"
    EXHAUSTED = "every valid configuration has been measured"
    TIMEOUT = "the time given is over"


@dataclass(frozen=True)
class Bench:
    """What runs are made with: everything but the study's storage and budget."""

    objective: Objective
    executor: Executor
    pool: CorePool
    runs: Path
    display: Display
    flavour: MpiFlavour | None = None
    run_time_limit_s: float | None = None
    retries: int = 2

    def task(self, number: int, configuration: Configuration, folder: str) -> Task:
        """Make the run of a configuration ready in an empty folder of its own."""
        context = Context(folder=fresh_folder(self.runs / folder), time_limit_s=self.run_time_limit_s)
        job = self.objective.job(configuration, context)
        return Task(number, replace(job, name=f"trial {number}"), self.objective)

    def place(self, task: Task) -> Task | None:
        """Give the task cores of its own; None while there are not enough."""
        cpus = self.pool.take(task.job.resources.cores)
        if cpus is None:
            return None
        return replace(task, job=replace(task.job, resources=replace(task.job.resources, cpus=cpus)))


@dataclass
class _InFlight:
    task: Task
    configuration: Configuration
    lines: LineReader
    read: ProgressReader
    since: float = field(default_factory=time.monotonic)
    progress: Progress | None = None


class StudyRunner:
    """Runs the trials of one study until its budget is used."""

    def __init__(
        self,
        store: StudyStore,
        space: Space,
        bench: Bench,
        budget: BudgetSection,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Work on `store` with `bench`; nothing runs before `tune`."""
        self._store = store
        self._space = space
        self._bench = bench
        self._budget = budget
        self._clock = clock
        self._trials: dict[int, TrialRecord] = {}
        self._in_flight: dict[int, _InFlight] = {}
        self._failures: Counter[str] = Counter()
        self._metric = store.definition.target
        self._machine_faults = 0
        self._ending = Ending.BUDGET

    def tune(self) -> Ending:
        """Run trials until there are as many as the budget says; repeat what was interrupted first.

        Raises:
            NothingWorkedError: the first trials all failed.
            CannotRunHereError: runs fail for reasons that are not the configurations'.
        """
        self._store.recover()
        self._trials = {trial.number: trial for trial in self._store.trials()}
        for trial in self._trials.values():
            self._count(trial)
        proposals = self._proposals(self._clock())
        waiting: Task | None = None
        while True:
            while len(self._in_flight) < self._workers():
                waiting = waiting or next(proposals, None)
                if waiting is None or not self._launch(waiting):
                    break
                waiting = None
            if not self._in_flight:
                return self._ending
            for task, outcome in self._bench.executor.wait(_TICK_S):
                self._ended(task, outcome)
            self._bench.display.update(self.status())

    def _workers(self) -> int:
        """Return how many trials may run now: the default configuration runs alone, and its answer is the reference."""
        first = default_trial(list(self._trials.values()))
        return self._budget.workers if first is not None and first.outcome is not None else 1

    def _proposals(self, started: float) -> Iterator[Task]:
        for record in [trial for trial in self._trials.values() if trial.outcome is None]:
            self._bench.display.line(f"trial {record.number}: was interrupted, runs again")
            yield self._prepare(record)
        limit = self._budget.timeout_s
        while len(self._trials) < self._budget.trials:
            if limit is not None and self._clock() - started >= limit:
                self._ending = Ending.TIMEOUT
                return
            proposed = self._ask()
            if proposed is None:
                self._ending = Ending.EXHAUSTED
                return
            yield self._prepare(proposed)

    def _ask(self) -> TrialRecord | None:
        size = self._space.size
        if size.exact and len(self._trials) >= size.value:
            return None
        return self._store.ask(self._space)

    def _prepare(self, record: TrialRecord) -> Task:
        self._trials[record.number] = record
        task = self._bench.task(record.number, record.configuration, f"{record.number:05d}")
        self._store.lease(record.number, describe_job(task.job, self._bench.flavour))
        return task

    def _launch(self, task: Task) -> bool:
        placed = self._bench.place(task)
        if placed is None:
            return False
        reference = baseline(list(self._trials.values())) or self._first_complete()
        answer = reference.outcome.answer if reference and reference.outcome else None
        placed = replace(placed, reference=answer)
        lines = LineReader(task.job.folder / STDOUT)
        self._in_flight[task.number] = _InFlight(
            placed, self._trials[task.number].configuration, lines, self._bench.objective.progress_reader()
        )
        self._bench.executor.submit(placed)
        return True

    def _first_complete(self) -> TrialRecord | None:
        return next((trial for trial in self._trials.values() if trial.complete), None)

    def _ended(self, task: Task, outcome: Outcome) -> None:
        flight = self._in_flight.pop(task.number)
        self._bench.pool.give_back(task.job.resources.cpus)
        if outcome.retryable and task.attempt <= self._bench.retries:
            self._bench.display.line(f"trial {task.number}: {outcome.message}; tried again")
            again = self._bench.task(task.number, flight.configuration, f"{task.number:05d}")
            self._launch(replace(again, attempt=task.attempt + 1))
            return
        if outcome.retryable:
            self._check_machine(task, outcome)
            return
        self._machine_faults = 0
        before = incumbent(list(self._trials.values()), self._metric)
        self._store.tell(task.number, outcome)
        record = replace(self._trials[task.number], outcome=outcome)
        self._trials[task.number] = record
        self._count(record)
        self._bench.display.line(self._line(record, before))
        self._check_hope()

    def _count(self, record: TrialRecord) -> None:
        if record.outcome is not None and record.outcome.failure is not None:
            self._failures[record.outcome.failure.value] += 1

    def _line(self, record: TrialRecord, before: TrialRecord | None) -> str:
        outcome = record.outcome
        if outcome is None or outcome.failure is not None:
            kind, message = (outcome.failure, outcome.message) if outcome else ("", "")
            return f"trial {record.number}: {kind}: {message}  {shown(record.configuration)}"
        value = record.value(self._metric)
        text = f"trial {record.number}: {value:g} {self._metric.unit}"
        reference = baseline(list(self._trials.values()))
        if reference is record:
            text += " (the default configuration)"
        elif reference is not None:
            text += f", {speed_up(value, reference.value(self._metric), self._metric):.2f}x"
        best = incumbent(list(self._trials.values()), self._metric)
        if before is not None and best is record:
            text += ", best so far"
        return f"{text}  {shown(record.configuration)}"

    def _check_machine(self, task: Task, outcome: Outcome) -> None:
        """Leave the trial as one that was interrupted: its configuration has shown nothing, another session runs it."""
        self._machine_faults += 1
        self._bench.display.line(f"trial {task.number}: could not be run: {outcome.message}")
        if self._machine_faults >= _BROKEN_AFTER:
            msg = (
                f"{self._machine_faults} trials in a row could not be run, whatever their configuration; "
                f"the last: {outcome.message}\nmend that, then use the same command again"
            )
            raise CannotRunHereError(msg)

    def _check_hope(self) -> None:
        ended = [trial for trial in self._trials.values() if trial.outcome is not None]
        if len(ended) >= self._budget.give_up_after and not any(trial.complete for trial in ended):
            raise NothingWorkedError(why_nothing_worked(ended))

    def status(self) -> Status:
        """Return how the study stands now."""
        trials = list(self._trials.values())
        for flight in self._in_flight.values():
            _follow(flight)
        running = tuple(
            Running(number, flight.configuration, time.monotonic() - flight.since, flight.progress)
            for number, flight in self._in_flight.items()
        )
        finished = sum(trial.outcome is not None for trial in trials)
        spent = [trial.outcome.usage.elapsed_s for trial in trials if trial.outcome is not None]
        left = fmean(spent) * (self._budget.trials - finished) / self._budget.workers if spent else None
        return Status(
            metric=self._metric,
            budget=self._budget.trials,
            finished=finished,
            running=running,
            best=incumbent(trials, self._metric),
            baseline=baseline(trials),
            failures=dict(self._failures),
            left_s=left,
        )


def why_nothing_worked(ended: list[TrialRecord]) -> str:
    """Say why every run failed: each reason once, the most frequent first."""
    reasons = Counter(trial.outcome.message for trial in ended if trial.outcome is not None)
    lines = [f"  {count} times: {message}" for message, count in reasons.most_common(5)]
    return "\n".join([f"all of the first {len(ended)} runs failed:", *lines])


def _follow(flight: _InFlight) -> None:
    with suppress(OSError):
        for line in flight.lines.new_lines():
            flight.progress = flight.read(line) or flight.progress
