"""The bench: what runs are made with, whatever they are made for."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.coordination.coordinators import Coordinators
from autotune.coordination.deadline import Deadline, expected_s
from autotune.coordination.lease_record import Leased
from autotune.display.console import Display
from autotune.errors import BusyError
from autotune.execution.capping import Cap, limited
from autotune.execution.core_pool import Pool
from autotune.execution.executor import Executor
from autotune.execution.run_folder import fresh_folder
from autotune.execution.segments import Segment
from autotune.execution.signals import Pause
from autotune.execution.task import PREEMPTED, Task, describe_job
from autotune.records.outcome import Outcome
from autotune.records.series import RunId, Series
from autotune.records.study import Purpose, Run
from launchers.local import sweep
from launchers.mpi import MpiFlavour
from objectives.base import Alike, Answer, Context, Objective
from spaces import Configuration


@dataclass(frozen=True)
class Inherited:
    """A run that a dead coordinator left, and its job."""

    leased: Leased
    job_id: str


@dataclass(frozen=True)
class Launched:
    """A run that was launched, and what it was made with."""

    task: Task
    purpose: Purpose
    job: Mapping[str, Any]
    started: str


class TakenError(BusyError):
    """Another coordinator of the study has this run in flight."""


@dataclass
class Bench:
    """Everything that runs need but the study's storage and budget; knows the runs in flight by their keys.

    `whole` is how far a program goes that works in steps, when it is not a matter of promotion. `clock` tells the time
    in which runs take place: that of a simulation is not ours. `deadline` is when runs must have ended, and `slowest_s`
    how long the slowest complete one took so far. `width` is how many of the runs that are compared with each other may
    go on side by side: more than one only where each has nodes of its own. `company` are the other coordinators of the
    study, where there may be some, or where jobs outlive theirs: those of a `scheduler`, of which `find_job` returns
    the one that was submitted last in the folder of a run, and which `end_jobs` ends. After a `pause` was asked for no
    run starts. `stored` tells how many runs of a trial are in storage. Where somebody else makes the runs, `asked`
    tells how many may go on with as many of them in flight as it is given, and `made_with` what a run that ended was
    made with.
    """

    objective: Objective
    executor: Executor
    pool: Pool
    runs: Path
    display: Display
    flavour: MpiFlavour | None = None
    run_time_limit_s: float | None = None
    retries: int = 2
    session: Mapping[str, str] = field(default_factory=dict)
    alike: Alike | None = None
    whole: Segment | None = None
    clock: Callable[[], float] = time.monotonic
    width: int = 1
    deadline: Deadline | None = None
    slowest_s: float | None = None
    coordinators: Coordinators | None = None
    scheduler: str = ""
    find_job: Callable[[Path], str | None] = lambda _: None
    end_jobs: Callable[[Sequence[str]], None] = lambda _: None
    stored: Callable[[int], int] = lambda _: 0
    pause: Pause = field(default_factory=Pause)
    asked: Callable[[int], int] | None = None
    made_with: Callable[["Launched", Outcome], Mapping[str, Any]] = lambda launched, _: launched.job
    _inherited: dict[str, Inherited] = field(default_factory=dict, init=False)
    _adopted: dict[str, Leased] = field(default_factory=dict, init=False)
    _refused: bool = field(default=False, init=False)

    def prepare(  # noqa: PLR0913  by keyword
        self,
        key: int,
        configuration: Configuration,
        folder: str,
        *,
        reference: Answer | None = None,
        cap: Cap | None = None,
        segment: Segment | None = None,
        seed: int = 0,
    ) -> Task:
        """Make the run of a configuration ready in an empty folder of its own; without a `leg` it is a whole one.

        A run that was inherited is ready already: it is gone on with.
        """
        segment = segment or self.whole
        self._take_over(folder)
        found = self._inherited.pop(folder, None)
        if found is not None:
            if dict(found.leased.purpose.configuration) == dict(configuration):
                self._adopted[folder] = found.leased
                task = found.leased.task(key, self.objective, reference=reference, segment=segment)
                return replace(task, job_id=found.job_id)
            self.end_jobs([found.job_id])
        context = Context(
            folder=fresh_folder(self.runs / folder),
            time_limit_s=self.run_time_limit_s,
            steps=segment.steps if segment else None,
            checkpoint=segment.checkpoint if segment else None,
            seed=seed,
        )
        job = replace(self.objective.job(configuration, context), name=folder)
        return Task(key, job, self.objective, reference, cap, segment, seed)

    def workers(self, most: int, flying: int) -> int:
        """Return how many runs may go on, `flying` of them already: `most`, or as many as somebody asks for."""
        return most if self.asked is None else self.asked(flying)

    def own(self, series: Series) -> str:
        """Return the folder of a run that each coordinator makes for itself."""
        alone = self.coordinators is None or self.coordinators.alone
        return str(RunId(series, coordinator="" if alone or self.coordinators is None else self.coordinators.folder))

    def inherit(self, stored: Iterable[Run]) -> list[Leased]:
        """Take over the runs that dead coordinators left; return those with jobs that may go on, or wait to be read.

        `stored` are the runs that are stored: a coordinator may have died just after.
        """
        known = frozenset((run.started, run.job.get("folder")) for run in stored)
        self._take_over(None, known)
        return [inherited.leased for inherited in self._inherited.values()]

    def _take_over(self, place: str | None, known: Set[tuple[str, str | None]] = frozenset()) -> None:
        """Take over what dead coordinators left, everywhere or in one place, but for runs that are `known`."""
        for lease in self.coordinators.inherit(place) if self.coordinators is not None else ():
            assert self.coordinators is not None
            leased = Leased.from_dict(lease.record)
            folder = Path(leased.job["folder"])
            job_id = self.find_job(folder) or lease.job_id
            if job_id is None or (leased.started, leased.job["folder"]) in known:
                sweep(folder)
                self.coordinators.release(lease.place)
            else:
                self._inherited[lease.place] = Inherited(leased, job_id)

    def end_left_over(self) -> None:
        """End the inherited jobs that nobody wants any more."""
        given_up, self._inherited = self._inherited, {}
        self.end_jobs([inherited.job_id for inherited in given_up.values()])
        for place in given_up:
            assert self.coordinators is not None
            self.coordinators.release(place)

    def start(self, task: Task, purpose: Purpose, known: int | None = None) -> Launched | None:
        """Start a prepared task on cores of its own; None while there are not enough, or if it would end too late.

        It is a run of a trial of which so many runs were `known` when it was decided on.

        Raises:
            TakenError: another coordinator has started this run, or made it meanwhile.
        """
        adopted = self._adopted.pop(task.job.name, None)
        if adopted is not None:
            self.executor.submit(task)
            return Launched(task, purpose, adopted.job, adopted.started)
        if self.pause.asked:
            return None
        if self.deadline is not None:
            limit_s = limited(task.job, task.cap).time_limit_s
            self._refused = not self.deadline.allows(expected_s(limit_s, self.slowest_s))
            if self._refused:
                return None
        resources = self.pool.take(task.job.resources)
        if resources is None:
            return None
        placed = replace(task, job=replace(task.job, resources=resources))
        launched = Launched(placed, purpose, describe_job(placed.job, self.flavour), datetime.now(UTC).isoformat())
        if self.coordinators is not None:
            leased = Leased.of(placed, purpose, launched.job, launched.started, self.scheduler)
            if not self._taken(placed.job.name, leased, known):
                self.pool.give_back(resources)
                msg = f"run {placed.job.name} is being made by another process that works on the study; try again later"
                raise TakenError(msg)
        self.executor.submit(placed)
        if self.coordinators is not None:
            self.coordinators.beat()
        return launched

    def _taken(self, place: str, leased: Leased, known: int | None) -> bool:
        """Take a run; False if another coordinator has it, or had it: it may have stored it and given it up since."""
        assert self.coordinators is not None
        if not self.coordinators.take(place, leased.to_dict()):
            return False
        trial = leased.purpose.trial
        if known is None or trial is None or self.coordinators.alone or self.stored(trial) <= known:
            return True
        self.coordinators.release(place)
        return False

    def release(self, launched: Launched) -> None:
        """Give up a run that will not be made again now."""
        if self.coordinators is not None:
            self.coordinators.release(launched.task.job.name)

    def at_most(self, wanted: int) -> int:
        """Return how many runs may be in flight, of so many that are wanted, for another one to start."""
        return 0 if self.pause.asked else wanted

    def check_time(self, *, idle: bool = False) -> None:
        """See whether the time of the runs in flight is over; with none of them (`idle`), whether a start was refused.

        Others are told that this coordinator lives. A pause waits for the runs in flight, but not for jobs of a batch
        system, which may take days: those are left to the next session.

        Raises:
            UnfinishedError: it is.
            PausedError: a pause was asked for, and there is nothing to wait for.
        """
        if self.coordinators is not None:
            self.coordinators.beat()
        if self.deadline is not None and ((idle and self._refused) or not self.deadline.allows(None)):
            raise self.deadline.over()
        if self.pause.asked and (idle or self.scheduler):
            raise self.pause.over(jobs_stay=bool(self.scheduler))

    def ended(self, launched: Launched, outcome: Outcome) -> Run:
        """Take the cores back and return the run with its outcome."""
        if outcome.complete:
            self.slowest_s = max(self.slowest_s or 0.0, outcome.usage.elapsed_s)
        self.pool.give_back(launched.task.job.resources)
        purpose = launched.purpose
        return Run(
            purpose.configuration,
            purpose.trial,
            purpose.series,
            purpose.round,
            purpose.block,
            purpose.steps,
            purpose.of,
            outcome=outcome,
            started=launched.started,
            job=self.made_with(launched, outcome),
            session=self.session,
        )

    def again(self, launched: Launched, outcome: Outcome) -> Task | None:
        """Make a run ready again that failed for no fault of its configuration; None when that was tried enough.

        A job that had to make way for another one is no try.
        """
        task = launched.task
        preempted = outcome.code == PREEMPTED
        if task.attempt > self.retries and not preempted:
            return None
        purpose = launched.purpose
        fresh = self.prepare(task.key, purpose.configuration, task.job.name, segment=task.segment, seed=task.seed)
        return replace(task, job=fresh.job, attempt=task.attempt + (not preempted), job_id=None)
