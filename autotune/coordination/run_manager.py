"""The run manager takes each run of a session from its plan to its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import inf
from typing import Any, Self

from autotune.coordination.cleaner import Cleaner
from autotune.coordination.disturbances import Disturbances
from autotune.coordination.kept_results import keep_results
from autotune.coordination.neighbours import Neighbours
from autotune.coordination.nodes import Nodes
from autotune.coordination.quiet_machine import QuietMachine
from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_registry import RunRegistry
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.coordination.walltime import WallTimes
from autotune.display.console import Display
from autotune.errors import CannotRunHereError
from autotune.execution.capping import Cap
from autotune.execution.core_pool import Pool
from autotune.execution.executor import Executor
from autotune.execution.halves import Halves
from autotune.execution.run_folder import mark_unread
from autotune.execution.segments import Segment
from autotune.execution.task import CUT_SHORT, NO_PLACE, PREEMPTED, REFUSED, REFUSED_ALL, describe_job
from autotune.records.outcome import DISTURBED, Outcome
from autotune.records.series import Series
from autotune.records.study import Purpose, Run
from autotune.storage.study_store import StudyStore
from launchers.mpi import MpiFlavour
from objectives.base import Answer, Objective
from objectives.ending import LOST

# The number of repeats of a run that do not count as tries, because the cause lies outside of the run.
_MOST_UNCOUNTED = 20
_CANCELLED = "cancelled"


@dataclass
class RunManager:
    """Makes runs.

    Attributes:
        executor: Runs tasks.
        pool: Gives each run its cores.
        factory: Prepares runs.
        gate: Admits runs.
        registry: Leases runs.
        display: Shows messages.
        flavour: The MPI that starts ranks; stored with each run.
        session: Facts of this session; stored with each run.
        cleaner: Removes the scratch data of stored runs; None if runs have no folders here.
        neighbours: Finds runs that disturbed each other.
        disturbances: Finds runs that other processes disturbed; None if all runs count.
        quiet: The machine that comparisons wait for; None if they do not wait.
        nodes: The nodes on which runs can be placed.
        halves: The cores of two runs side by side.
        mark: The study's mark, for results that its storage does not take.
        known: The metrics of the first run that counts, one of the default: where runs that search begin.
        in_flight: Started runs by name.
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
    known: Mapping[str, float] = field(default_factory=dict)
    in_flight: dict[str, RunInFlight] = field(default_factory=dict)

    def for_objective(self, objective: Objective) -> Self:
        """Return a manager of another objective's runs, which learns about them separately."""
        gate = replace(self.gate, walltimes=WallTimes(self.gate.walltimes.site_s))
        return replace(self, factory=replace(self.factory, objective=objective), gate=gate, known={})

    def learn(self, outcome: Outcome, cores: int, series: Series) -> None:
        """Learn from a run, of this session or an earlier one, how long runs take and what they measure."""
        self.gate.learn(outcome, cores)
        if outcome.complete and series.is_tuning and not self.known:
            self.known = outcome.metrics

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
        """Plan a run in an empty folder of its own, or resume it if an earlier session left its job."""
        inherited = self.registry.take_inherited(name)
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
            known=self.known,
        )
        return PlannedRun(task, purpose)

    def start(self, planned: PlannedRun) -> RunInFlight | None:
        """Start a planned run on its own cores; None if too few are free, or if it may not start now."""
        return next(iter(self.start_all([planned])), None)

    def start_all(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        """Start the first of these runs, as many as may start now; store their leases together."""
        return self._start_placed(self._place_all(planned))

    def start_together(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        """Start all of these runs side by side, or none if one may not start now."""
        placed = self._place_all(planned)
        if len(placed) < len(planned):
            for run in placed:
                self.pool.give_back(run.task.job.resources)
            return []
        return self._start_placed(placed)

    def _place_all(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        runs: list[RunInFlight] = []
        for one in planned:
            placed = self._place(one)
            if placed is None:
                break
            runs.append(placed)
        return runs

    def _start_placed(self, runs: Sequence[RunInFlight]) -> list[RunInFlight]:
        self.registry.take([run for run in runs if run.planned.inherited is None])
        return [self._begin(run) for run in runs]

    def _place(self, planned: PlannedRun) -> RunInFlight | None:
        """Return a run with its cores; None if too few are free, or if it may not start now."""
        if planned.inherited is not None:
            return RunInFlight(planned, planned.inherited.started, planned.inherited.job)
        task = planned.task
        resources = self.pool.take(task.job.resources) if self.gate.admits(task) else None
        if resources is None:
            return None
        task = self.gate.walltimes.set_for(replace(task, job=replace(task.job, resources=resources)))
        placed = replace(planned, task=task)
        described = describe_job(placed.task.job, self.flavour, on_site=bool(self.registry.scheduler))
        return RunInFlight(placed, datetime.now(UTC).isoformat(), described)

    def _begin(self, run: RunInFlight) -> RunInFlight:
        self.executor.submit(run.task)
        self.neighbours.begin(run)
        self.in_flight[run.name] = run
        return run

    def wait_until_quiet(self) -> None:
        """Wait for a while if others use the machine, if it may be busy and no run is in flight.

        Raises:
            CannotRunHereError: Others use it, and the study refuses disturbed runs.
        """
        if self.quiet is not None and self.disturbances is not None and not self.in_flight:
            self.disturbances.wait_until_quiet(self.quiet, self.display, lambda: self.check(idle=True))

    def check(self, *, idle: bool = False) -> None:
        """Check that the session may continue, as `RunGate.check` does.

        Raises:
            UnfinishedError: The time is over.
            PausedError: A pause was requested, and no run needs to be waited for.
            BusyError: Another session has taken the study over.
        """
        self.gate.check(idle=idle)

    def finish(self, run: RunInFlight, outcome: Outcome) -> Run:
        """Take the cores back and return the run with its outcome; a disturbed run is set aside."""
        outcome = self.neighbours.end(run, outcome)
        if self.disturbances is not None and not outcome.disturbed:
            outcome = self.disturbances.judge(run, outcome)
        return self._take_back(run, outcome)

    def finish_together(self, ended: Sequence[tuple[RunInFlight, Outcome]]) -> list[Run]:
        """Finish runs side by side; if one does not count, the others do not either."""
        ended = [(run, self.neighbours.end(run, outcome)) for run, outcome in ended]
        if self.disturbances is not None and not any(outcome.disturbed for _, outcome in ended):
            ended = self.disturbances.judge_together(ended)
        return [self._take_back(run, outcome) for run, outcome in ended]

    def _take_back(self, run: RunInFlight, outcome: Outcome) -> Run:
        self.in_flight.pop(run.name, None)
        self.learn(outcome, run.task.job.resources.cores, run.purpose.series)
        self.nodes.learn(run, outcome)
        self.pool.give_back(run.task.job.resources)
        job: Mapping[str, Any] = self.executor.made_with(run.job, outcome)
        ended = run.run_to_store(outcome, job, self.session)
        return replace(ended, series=ended.series.aside) if outcome.disturbed else ended

    def store(self, store: StudyStore, ended: Sequence[tuple[RunInFlight, Run]]) -> None:
        """Store ended runs, all or none. Until then their folders are the only evidence.

        Raises:
            StorageError: The storage cannot be used.
            BusyError: Another session has taken the study over.
        """
        try:
            store.add_runs([run for _, run in ended], [run.name for run, _ in ended])
        except BaseException:  # also Ctrl-C during the wait for the storage
            self._keep([run for _, run in ended])
            raise
        for run, _ in ended:
            self.clean(run)

    def keep_ended(self) -> None:
        """Keep the results of ended runs that were not collected, because the storage cannot be used."""
        for task, outcome in self.executor.wait(0.0):
            run = self.in_flight.get(task.job.name)
            # A training needs no kept result: it resumes from its checkpoint.
            if run is not None and not outcome.retryable and task.segment is None:
                self._keep([self.finish(run, outcome)])

    def _keep(self, runs: Sequence[Run]) -> None:
        if self.mark:
            keep_results(self.mark, runs, self.display.line)

    def clean(self, run: RunInFlight) -> None:
        """Remove the scratch data of a run that is stored or given up."""
        if self.cleaner is not None:
            self.cleaner.clean(run.task.job)

    def give_up(self, run: RunInFlight) -> None:
        """Give up a run after too many tries; a later session may make another in its place."""
        mark_unread(run.task.job.folder)
        self.registry.release(run.name)
        self.clean(run)

    def plan_retry(self, run: RunInFlight, outcome: Outcome) -> PlannedRun | None:
        """Plan a failed run again if its configuration is not at fault; None after too many tries.

        A job that was preempted, that could not be placed, or whose wall time turned out too short, does not count as a
        try, nor does one that was lost after an earlier session had left it. A job that the batch system will never
        take is not sent again.

        Raises:
            CannotRunHereError: The batch system takes no job of this site.
        """
        task = run.task
        end = outcome.code.rpartition(".")[2]
        # Whatever ended the earlier session, such as a machine that was shut down, may have ended its job, too.
        was_left = task.job_id is not None and end in {LOST, _CANCELLED}
        # Where no batch system says who ended a job, one that is always ended for a reason of its own looks preempted.
        no_try = (was_left or outcome.code in {PREEMPTED, NO_PLACE, CUT_SHORT}) and task.uncounted < _MOST_UNCOUNTED
        if outcome.code == REFUSED_ALL:
            msg = f"{outcome.message}\nso would be every job; fix the site's settings, then use the same command again"
            raise CannotRunHereError(msg)
        if outcome.code == REFUSED:
            return None
        if outcome.code == DISTURBED:
            if self.disturbances is None or self.disturbances.mode == "refuse":
                return None
        elif task.attempt > self.factory.retries and not no_try:
            return None
        fresh = self.prepare(task.key, run.purpose, run.name, segment=task.segment, seed=task.seed)
        # Its limits may differ from those of other runs.
        job = replace(
            fresh.task.job,
            time_limit_s=task.job.time_limit_s,
            memory_limit_bytes=task.job.memory_limit_bytes,
            # A job that was lost may have been ended at its wall time by a batch system that does not say so.
            walltime_s=inf if end in {CUT_SHORT, LOST, _CANCELLED} or task.job.walltime_s == inf else None,
        )
        again = replace(
            task, job=job, attempt=task.attempt + (not no_try), uncounted=task.uncounted + no_try, job_id=None
        )
        return replace(run.planned, task=again, inherited=fresh.inherited)
