"""The run manager: takes each run of a session from its plan to its end, whatever it is made for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from autotune.coordination.cleaner import Cleaner
from autotune.coordination.disturbances import Disturbances
from autotune.coordination.kept_results import keep
from autotune.coordination.neighbours import Neighbours
from autotune.coordination.nodes import Nodes
from autotune.coordination.quiet import QuietMachine
from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_registry import RunRegistry
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.display.console import Display
from autotune.errors import CannotRunHereError
from autotune.execution.capping import Cap
from autotune.execution.core_pool import Pool
from autotune.execution.executor import Executor
from autotune.execution.halves import Halves
from autotune.execution.run_folder import mark_unread
from autotune.execution.segments import Segment
from autotune.execution.task import NO_PLACE, PREEMPTED, REFUSED, REFUSED_ALL, describe_job
from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.study import Purpose, Run
from autotune.storage.study_store import StudyStore
from launchers.mpi import MpiFlavour
from objectives.base import Answer, Objective


@dataclass
class RunManager:
    """Makes runs: `factory` prepares them, `gate` admits them, `registry` leases them, `executor` runs them.

    `pool` gives each the cores that it needs; `flavour` is what starts ranks, and `session` are facts of this session:
    both are stored with each run. `cleaner` removes the scratch data of runs that are stored; None where there is none.
    `neighbours` knows which runs disturbed each other, `disturbances` which others have disturbed; without, all count.
    `quiet` is the machine that comparisons wait for, if they do; `nodes` are those on which they can be made, `halves`
    the cores of two runs side by side.
    By the study's `mark` results are kept that its storage does not take; `in_flight` are the started runs, by name.
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
    neighbours: Neighbours = field(default_factory=Neighbours)
    disturbances: Disturbances | None = None
    quiet: QuietMachine | None = None
    nodes: Nodes = field(default_factory=Nodes)
    halves: Halves = field(default_factory=Halves)
    mark: str = ""
    in_flight: dict[str, RunInFlight] = field(default_factory=dict)

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
            key,
            purpose.configuration,
            name,
            reference=reference,
            cap=cap,
            segment=segment,
            seed=seed,
        )
        return PlannedRun(task, purpose)

    def start(self, planned: PlannedRun) -> RunInFlight | None:
        """Start a planned run on cores of its own; None while there are not enough, or if it may not start now.

        Raises:
            CannotRunHereError: others have cost this session too much time.
        """
        return next(iter(self.start_all([planned])), None)

    def start_all(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        """Start the first of these runs, as many as may start now; their leases are stored together."""
        return self._started(self._all_placed(planned))

    def start_together(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        """Start all of these runs, side by side; none of them if one may not start now.

        Raises:
            CannotRunHereError: others have cost this session too much time.
        """
        placed = self._all_placed(planned)
        if len(placed) < len(planned):
            for run in placed:
                self.pool.give_back(run.task.job.resources)
            return []
        return self._started(placed)

    def _all_placed(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        runs: list[RunInFlight] = []
        for one in planned:
            placed = self._placed(one)
            if placed is None:
                break
            runs.append(placed)
        return runs

    def _started(self, runs: Sequence[RunInFlight]) -> list[RunInFlight]:
        self.registry.take([run for run in runs if run.planned.inherited is None])
        return [self._begun(run) for run in runs]

    def _placed(self, planned: PlannedRun) -> RunInFlight | None:
        """Return a run with the cores that it gets; None while there are not enough, or if it may not start now."""
        if planned.inherited is not None:
            return RunInFlight(planned, planned.inherited.started, planned.inherited.job)
        if self.disturbances is not None:
            self.disturbances.check_patience()
        task = planned.task
        resources = self.pool.take(task.job.resources) if self.gate.admits(task) else None
        if resources is None:
            return None
        placed = replace(planned, task=replace(task, job=replace(task.job, resources=resources)))
        described = describe_job(placed.task.job, self.flavour, on_site=bool(self.registry.scheduler))
        return RunInFlight(placed, datetime.now(UTC).isoformat(), described)

    def _begun(self, run: RunInFlight) -> RunInFlight:
        self.executor.submit(run.task)
        self.neighbours.begin(run)
        self.in_flight[run.name] = run
        return run

    def wait_until_quiet(self) -> None:
        """Wait while others use the machine, if there is a reason to think so; nothing of ours may run.

        Raises:
            CannotRunHereError: others use it all the time.
        """
        judge = self.disturbances
        if self.quiet is None or judge is None or not judge.suspects or self.in_flight:
            return
        judge.lose(self.quiet.wait(self.display, lambda: self.check(idle=True), judge.patience_s))
        judge.suspects = False

    def check(self, *, idle: bool = False) -> None:
        """See whether runs may go on, as `RunGate.check`.

        Raises:
            UnfinishedError: the time is over.
            PausedError: a pause was asked for, and there is nothing to wait for.
            BusyError: another session has taken the study over.
        """
        self.gate.check(idle=idle)

    def ended(self, run: RunInFlight, outcome: Outcome) -> Run:
        """Take the cores back and return the run with its outcome; one that others disturbed is set aside."""
        outcome = self.neighbours.end(run, outcome)
        if self.disturbances is not None and not outcome.disturbed:
            outcome = self.disturbances.judge(run, outcome)
        return self._taken_back(run, outcome)

    def ended_together(self, ended: Sequence[tuple[RunInFlight, Outcome]]) -> list[Run]:
        """Take back the cores of runs side by side, which are judged together: what disturbs all alike does not count.

        Where one does not count, none does: the others ran beside it.
        """
        ended = [(run, self.neighbours.end(run, outcome)) for run, outcome in ended]
        if self.disturbances is not None and not any(outcome.disturbed for _, outcome in ended):
            ended = self.disturbances.judge_together(ended)
        return [self._taken_back(run, outcome) for run, outcome in ended]

    def _taken_back(self, run: RunInFlight, outcome: Outcome) -> Run:
        self.in_flight.pop(run.name, None)
        self.gate.learn(outcome)
        self.nodes.learn(run, outcome)
        self.pool.give_back(run.task.job.resources)
        job: Mapping[str, Any] = self.executor.made_with(run.job, outcome)
        ended = run.ended(outcome, job, self.session)
        return replace(ended, series=ended.series.aside) if outcome.disturbed else ended

    def store(self, store: StudyStore, ended: Sequence[tuple[RunInFlight, Run]]) -> None:
        """Store runs that ended, all of them or none; what they leave in their folders is evidence until then.

        Raises:
            StorageError: the storage cannot be used.
            BusyError: another session has taken the study over.
        """
        try:
            store.add_runs([run for _, run in ended], [run.name for run, _ in ended])
        except BaseException:  # Ctrl-C while the storage is waited for, too
            self._keep([run for _, run in ended])
            raise
        for run, _ in ended:
            self.clean(run)

    def keep_ended(self) -> None:
        """Keep the results of runs that have ended and that nobody has asked for: the study's storage is away."""
        for task, outcome in self.executor.wait(0.0):
            run = self.in_flight.get(task.job.name)
            # A training goes on from its checkpoint.
            if run is not None and not outcome.retryable and task.segment is None:
                self._keep([self.ended(run, outcome)])

    def _keep(self, runs: Sequence[Run]) -> None:
        if self.mark:
            keep(self.mark, runs, self.display.line)

    def clean(self, run: RunInFlight) -> None:
        """Remove the scratch data of a run that is stored, or that is given up."""
        if self.cleaner is not None:
            self.cleaner.clean(run.task.job)

    def give_up(self, run: RunInFlight) -> None:
        """Give up a run that was tried enough: who wants to, makes another one in its place."""
        mark_unread(run.task.job.folder)
        self.registry.release(run.name)
        self.clean(run)

    def again(self, run: RunInFlight, outcome: Outcome) -> PlannedRun | None:
        """Plan a run again that failed for no fault of its configuration; None when that was tried enough.

        A job that had to make way for another one, or that could not be where it was to be, is no try. What the batch
        system will never take is not sent again.

        Raises:
            CannotRunHereError: it takes no job of this site at all.
        """
        task = run.task
        no_try = outcome.code in {PREEMPTED, NO_PLACE}
        if outcome.code == REFUSED_ALL:
            msg = f"{outcome.message}\nso would be every job; mend the site's settings, then use the same command again"
            raise CannotRunHereError(msg)
        if outcome.code == REFUSED:
            return None
        if outcome.code == DISTURBED:
            if self.disturbances is None or not self.disturbances.may_again(run.purpose):
                return None
        elif task.attempt > self.factory.retries and not no_try:
            return None
        fresh = self.prepare(task.key, run.purpose, run.name, segment=task.segment, seed=task.seed)
        # Its limits may be other ones than those of all runs.
        job = replace(
            fresh.task.job, time_limit_s=task.job.time_limit_s, memory_limit_bytes=task.job.memory_limit_bytes
        )
        again = replace(task, job=job, attempt=task.attempt + (not no_try), job_id=None)
        return replace(run.planned, task=again, inherited=fresh.inherited)
