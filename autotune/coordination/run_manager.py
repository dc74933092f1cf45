"""The run manager: takes each run of a session from its plan to its end, whatever it is made for."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from autotune.coordination.cleaner import Cleaner
from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_registry import RunRegistry
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.display.console import Display
from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.capping import Cap
from autotune.execution.core_pool import Pool
from autotune.execution.executor import Executor
from autotune.execution.segments import Segment
from autotune.execution.task import PREEMPTED, REFUSED, REFUSED_ALL, describe_job
from autotune.records.outcome import Outcome
from autotune.records.study import Purpose, Run
from autotune.storage.study_store import StudyStore
from launchers.mpi import MpiFlavour
from objectives.base import Answer, Objective


class TakenError(BusyError):
    """Another coordinator of the study has this run in flight."""


@dataclass
class RunManager:
    """Makes runs: `factory` prepares them, `gate` admits them, `registry` leases them, `executor` runs them.

    `pool` gives each the cores that it needs; `flavour` is what starts ranks, and `session` are facts of this session:
    both are stored with each run. `cleaner` removes the scratch data of runs that are stored; None where there is none.
    """

    executor: Executor
    pool: Pool
    factory: RunFactory
    gate: RunGate
    registry: RunRegistry
    display: Display
    flavour: MpiFlavour | None = None
    session: Mapping[str, str] = field(default_factory=dict)
    cleaner: Cleaner | None = None

    def for_objective(self, objective: Objective) -> Self:
        """Return a manager of runs of another objective, which takes note of how slow those are for itself."""
        return replace(self, factory=replace(self.factory, objective=objective), gate=replace(self.gate))

    def prepare(  # noqa: PLR0913  by keyword
        self,
        key: int,
        purpose: Purpose,
        name: str,
        *,
        reference: Answer | None = None,
        cap: Cap | None = None,
        segment: Segment | None = None,
        seed: int = 0,
    ) -> PlannedRun:
        """Plan a run in an empty folder of its own. An inherited run is already prepared; it is resumed."""
        inherited = self.registry.inherited(name)
        if inherited is not None:
            lease, job_id = inherited
            if dict(lease.purpose.configuration) == dict(purpose.configuration):
                segment = segment or self.factory.whole
                task = lease.task(key, self.factory.objective, reference=reference, segment=segment)
                return PlannedRun(replace(task, job_id=job_id), purpose, inherited=lease)
            self.executor.end_jobs([job_id])
        if self.cleaner is not None:
            self.cleaner.wait(name)
        task = self.factory.task(
            key, purpose.configuration, name, reference=reference, cap=cap, segment=segment, seed=seed
        )
        return PlannedRun(task, purpose)

    def start(self, planned: PlannedRun) -> RunInFlight | None:
        """Start a planned run on cores of its own; None while there are not enough, or if it may not start now.

        Raises:
            TakenError: another coordinator has started this run, or made it meanwhile.
        """
        task = planned.task
        if planned.inherited is not None:
            self.executor.submit(task)
            return RunInFlight(planned, planned.inherited.started, planned.inherited.job)
        if not self.gate.admits(task):
            return None
        resources = self.pool.take(task.job.resources)
        if resources is None:
            return None
        placed = replace(planned, task=replace(task, job=replace(task.job, resources=resources)))
        run = RunInFlight(placed, datetime.now(UTC).isoformat(), describe_job(placed.task.job, self.flavour))
        if not self.registry.take(run):
            self.pool.give_back(resources)
            msg = f"run {run.name} is being made by another process that works on the study; try again later"
            raise TakenError(msg)
        self.executor.submit(placed.task)
        self.registry.beat()
        return run

    def check(self, *, idle: bool = False) -> None:
        """Tell the other coordinators that this one lives; then see whether runs may go on, as `RunGate.check`.

        Raises:
            UnfinishedError: the time is over.
            PausedError: a pause was asked for, and there is nothing to wait for.
        """
        self.registry.beat()
        self.gate.check(idle=idle)

    def ended(self, run: RunInFlight, outcome: Outcome) -> Run:
        """Take the cores back and return the run with its outcome."""
        self.gate.learn(outcome)
        self.pool.give_back(run.task.job.resources)
        job: Mapping[str, Any] = self.executor.made_with(run.job, outcome)
        return run.ended(outcome, job, self.session)

    def store(self, store: StudyStore, ended: Sequence[tuple[RunInFlight, Run]]) -> Collection[str]:
        """Store runs that ended, all of them or none; what they leave in their folders is evidence until then.

        Return the names of runs that are not stored: another coordinator, which took this one for dead, has them now.
        """
        lost = store.add_runs([run for _, run in ended], [run.name for run, _ in ended], self.registry.holder)
        for run, stored in ended:
            if run.name in lost:
                self.executor.drop(stored.outcome)
                self.display.line(
                    f"run {run.name}: its result is dropped: this process was not heard of for a while, and another "
                    "one that works on the study has the run now"
                )
            else:
                self.clean(run)
        return lost

    def clean(self, run: RunInFlight) -> None:
        """Remove the scratch data of a run that is stored, or that nobody will make again."""
        if self.cleaner is not None:
            self.cleaner.clean(run.task.job)

    def again(self, run: RunInFlight, outcome: Outcome) -> PlannedRun | None:
        """Plan a run again that failed for no fault of its configuration; None when that was tried enough.

        A job that had to make way for another one is no try. What the batch system will never take is not sent again.

        Raises:
            CannotRunHereError: it takes no job of this site at all.
        """
        task = run.task
        preempted = outcome.code == PREEMPTED
        if outcome.code == REFUSED_ALL:
            msg = f"{outcome.message}\nso would be every job; mend the site's settings, then use the same command again"
            raise CannotRunHereError(msg)
        if outcome.code == REFUSED:
            return None
        if task.attempt > self.factory.retries and not preempted:
            return None
        fresh = self.prepare(task.key, run.purpose, run.name, segment=task.segment, seed=task.seed)
        again = replace(task, job=fresh.task.job, attempt=task.attempt + (not preempted), job_id=None)
        return replace(run.planned, task=again, inherited=fresh.inherited)
