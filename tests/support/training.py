"""Simulated training: known curves, and checkpoints that are real files."""

import json
from collections.abc import Callable, Sequence

from autotune.execution.core_pool import CorePool
from autotune.execution.executor import Executor
from autotune.execution.segments import CURVE, Segment, SegmentWatch
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.records.study import STOPPED
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from autotune.tuning.loop import TuningLoop
from launchers import Job, Usage
from objectives.base import Context, FailureKind, Metric, Progress
from spaces import Configuration, Float, Integer, Space
from tests.support.fakes import PaperObjective, definition, study_file
from tests.support.managers import managed

SCORE = Metric("score", "", "maximize")
SPACE = Space(
    [Integer("batch", (8, 16, 32, 64), default=64), Float("rate", 1e-4, 1e-1, log=True, points=10, default=1e-3)]
)


def learned(configuration: Configuration, step: int) -> float:
    """Return a score that grows with the steps; best for small batches and a rate of 0.01."""
    rate = abs(float(configuration["rate"]) - 1e-2) / 1e-2
    best = 1.0 / (1.0 + 0.2 * rate + float(configuration["batch"]) / 64)
    return best * (1.0 - 0.7**step)


class PaperTraining(PaperObjective):
    """The paper objective for training; its command also has the random seed."""

    def __init__(self, metric: Metric = SCORE) -> None:
        self.metrics = (metric,)

    def job(self, configuration: Configuration, context: Context) -> Job:
        return Job(("train", json.dumps(dict(configuration)), str(context.seed)), context.folder)


class TrainingExecutor(Executor):
    """Train at once from the checkpoint on, and list what was trained: (trial, from, to)."""

    def __init__(
        self,
        curve: Callable[[Configuration, int], float] = learned,
        at_most: int = 10**9,
        fails: Callable[[Configuration, int], bool] = lambda *_: False,
        ends: Callable[[Configuration], int] = lambda _: 10**9,
        metric: Metric = SCORE,
    ) -> None:
        self.trained: list[tuple[int, int, int]] = []
        self._curve, self._at_most, self._fails, self._ends = curve, at_most, fails, ends
        self._metric = metric
        self._ended: list[tuple[Task, Outcome]] = []

    def submit(self, task: Task) -> None:
        if len(self.trained) >= self._at_most:
            raise KeyboardInterrupt
        assert task.segment is not None
        configuration = json.loads(task.job.argv[1])
        self._ended.append((task, self._outcome(task.key, task.segment, configuration)))

    def _outcome(self, key: int, segment: Segment, configuration: Configuration) -> Outcome:
        file = segment.checkpoint / "step" if segment.checkpoint else None
        first = int(file.read_text()) if file and file.exists() else 0
        watch, curve, last = SegmentWatch(segment), [], min(segment.steps, self._ends(configuration))
        for step in range(first + 1, last + 1):
            if self._fails(configuration, step):
                self.trained.append((key, first, step))
                return Outcome(failure=FailureKind.OUT_OF_MEMORY, code="x", message="no memory")
            curve.append([step, self._curve(configuration, step)])
            if watch(Progress(step, {self._metric.name: curve[-1][1]})):
                break
        self.trained.append((key, first, first + len(curve)))
        if not curve:
            return Outcome(failure=FailureKind.INVALID_RESULT, code="no-progress", message="no step was reported")
        if file:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(str(first + len(curve)))
        details = {CURVE: curve} | ({STOPPED: watch.behind} if watch.behind else {})
        best = min((value for _, value in curve), key=self._metric.cost)
        return Outcome(metrics={self._metric.name: best}, details=details, usage=Usage(float(len(curve))))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        ended, self._ended = self._ended, []
        return ended

    def cancel_all(self) -> None:
        self._ended = []

    def leave(self) -> None:
        self._ended = []


def training_study(trials: int, **stopping: object) -> StudyFile:
    """Return a study file with rules for stopping."""
    rules = {"max_steps": 27, **stopping}
    return study_file(stopping=rules, budget={"trials": trials})


def training_session(folder, executor, study, *, seed=0, workers=1, model=True, kept=False):
    """Return the store, manager and tuning loop of a session; the store is a file if `kept`, else in memory."""
    known = definition(SPACE, metrics=(SCORE,))
    url = f"sqlite:///{folder / 'autotune.db'}"
    store = StudyStore.create(url, "paper", known) if kept else StudyStore.in_memory(known)
    asker = Asker(store, ValidSetSampler(SPACE, seed=seed, model=model))
    most = study.stopping.max_steps
    whole, pool = Segment(most, most, SCORE), CorePool(range(8))
    manager = managed(executor, folder / "runs", objective=PaperTraining(), pool=pool, whole=whole)
    study = study.model_copy(update={"budget": study.budget.model_copy(update={"workers": workers})})
    return store, manager, TuningLoop(asker, manager, study)
