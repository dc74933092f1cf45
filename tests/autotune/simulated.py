"""Simulated studies: the real runner and the real confirmation, with runs that take simulated time only.

Shared by `test_trust.py` and `benchmarks/trust.py`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from autotune.bench import Bench
from autotune.capping import Watch, limited
from autotune.confirm import confirm
from autotune.cores import CorePool
from autotune.outcome import Outcome
from autotune.runner import Ending, StudyRunner
from autotune.search.samplers import sampler_of
from autotune.search.store import StudyStore
from autotune.studyfile import BudgetSection, RepeatsSection, SamplerSection, StudyFile, VerdictSection
from autotune.trial import Task
from autotune.verdict import Verdict
from launchers import Job, Usage
from objectives.base import Context, FailureKind, Measurement, Output, Progress, ProgressReader
from spaces import Configuration, Space
from tests.autotune.fakes import SECONDS, ListDisplay, definition

ValueOf = Callable[[Configuration, np.random.Generator], float | Outcome]
"""Draws one run of a configuration: how many seconds it takes, or how it fails."""


class SimulatedObjective:
    """Writes the configuration into the command, where the executor reads it; a line of output is a step's number."""

    metrics = (SECONDS,)

    def job(self, configuration: Configuration, context: Context) -> Job:
        return Job(("simulated", json.dumps(dict(configuration))), context.folder)

    def progress_reader(self) -> ProgressReader:
        return lambda line: Progress(int(line))

    def measure(self, output: Output) -> Measurement:
        raise AssertionError(output)


class SimulatedExecutor:
    """Answers each task at once, in simulated time: time limits, caps and paces end a run as they end a real one.

    With `steps`, a run tells that many equal steps. `spent_s` are the simulated seconds of all runs.
    """

    def __init__(self, value_of: ValueOf, seed: int, *, steps: int = 0) -> None:
        self.spent_s = 0.0
        self.runs = 0
        self._value_of = value_of
        self._rng = np.random.default_rng(seed)
        self._steps = steps
        self._ended: list[tuple[Task, Outcome]] = []

    def submit(self, task: Task) -> None:
        drawn = self._value_of(json.loads(task.job.argv[1]), self._rng)
        outcome = drawn if isinstance(drawn, Outcome) else run_for(task, drawn, self._steps)
        self.spent_s += outcome.usage.elapsed_s
        self.runs += 1
        self._ended.append((task, outcome))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        ended, self._ended = self._ended, []
        return ended

    def cancel_all(self) -> None:
        self._ended = []


def run_for(task: Task, elapsed_s: float, steps: int = 0) -> Outcome:
    """Return how a run ends that takes `elapsed_s` if nothing stops it."""
    now_s = 0.0
    watch = Watch(task.objective.progress_reader(), task.cap, clock=lambda: now_s)
    job = limited(task.job, task.cap)
    ends_s = elapsed_s if job.time_limit_s is None else min(elapsed_s, job.time_limit_s)
    for step in range(1, steps + 1):
        if elapsed_s * step / steps > ends_s:
            break
        now_s = elapsed_s * step / steps
        if watch(str(step)):
            return _capped(task, watch, now_s)
    if ends_s < elapsed_s:
        return _stopped(task, job, watch)
    return Outcome({SECONDS.name: elapsed_s}, timeline=watch.timeline, usage=Usage(elapsed_s))


def _stopped(task: Task, job: Job, watch: Watch) -> Outcome:
    limit_s = job.time_limit_s or 0.0
    if job is not task.job:
        return _capped(task, watch, limit_s)
    return Outcome(failure=FailureKind.TIMED_OUT, code="timed-out", timeline=watch.timeline, usage=Usage(limit_s))


def _capped(task: Task, watch: Watch, elapsed_s: float) -> Outcome:
    bound = task.cap.bound if task.cap else None
    return Outcome(bound=bound, code="capped", message="had lost", timeline=watch.timeline, usage=Usage(elapsed_s))


@dataclass(frozen=True)
class Simulation:
    """A study in memory, and what answers its runs."""

    space: Space
    executor: SimulatedExecutor
    study: StudyFile
    store: StudyStore

    @classmethod
    def of(cls, space: Space, executor: SimulatedExecutor, study: StudyFile) -> "Simulation":
        store = StudyStore.in_memory(definition(space))
        store.use(sampler_of(space, study.sampler))
        return cls(space, executor, study, store)

    def tune(self, trials: int | None = None) -> Ending:
        """Tune until there are `trials`, those of the study file unless told otherwise."""
        budget = self.study.budget if trials is None else BudgetSection(trials=trials)
        study = self.study.model_copy(update={"budget": budget})
        with TemporaryDirectory() as folder:
            return StudyRunner(self.store, self.space, self._bench(folder), study).tune()

    def confirm(self) -> Verdict | None:
        with TemporaryDirectory() as folder:
            return confirm(self.store, self._bench(folder), self.study)

    def _bench(self, folder: str) -> Bench:
        return Bench(SimulatedObjective(), self.executor, CorePool(range(1)), Path(folder), ListDisplay())


def simulated_study(
    space: Space,
    executor: SimulatedExecutor,
    *,
    trials: int,
    seed: int,
    repeats: RepeatsSection | None = None,
    verdict: VerdictSection | None = None,
    sampler: str = "autotune",
) -> tuple[StudyStore, Verdict | None, SimulatedExecutor]:
    """Tune and confirm; the verdict is None where nothing looked better than the default configuration."""
    study = study_file(trials=trials, seed=seed, repeats=repeats, verdict=verdict, sampler=sampler)
    simulation = Simulation.of(space, executor, study)
    simulation.tune()
    return simulation.store, simulation.confirm(), executor


def study_file(
    *,
    trials: int = 50,
    seed: int = 0,
    repeats: RepeatsSection | None = None,
    verdict: VerdictSection | None = None,
    sampler: str = "autotune",
) -> StudyFile:
    """Return a study file with the default settings but for these."""
    return StudyFile(
        name="simulated",
        objective="simulated",
        budget=BudgetSection(trials=trials),
        sampler=SamplerSection(name=sampler, seed=seed),
        repeats=repeats or RepeatsSection(),
        verdict=verdict or VerdictSection(),
    )
