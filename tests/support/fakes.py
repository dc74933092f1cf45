"""Fakes that run no program and refuse unknown input."""

import json
from collections.abc import Callable, Sequence

from autotune.display.console import Status
from autotune.execution.executor import Executor
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.studyfile import RepeatsSection, StudyFile
from autotune.studyfile.definition import Definition
from launchers import Job, Resources, Usage
from objectives.base import Context, FailureKind, Measurement, Metric, Output, Progress, ProgressReader
from spaces import Choice, Configuration, Constraint, Integer, Space

SECONDS = Metric("wall_s", "s", kind="time")


ONCE = RepeatsSection(max_runs=1, warm_up_runs=0, baseline_runs=1, baseline_every=0, caps=False)
"""Run every configuration once, for tests that have nothing to do with repeats."""


def study_file(**sections: object) -> StudyFile:
    """Return a study file of the paper objective."""
    return StudyFile.model_validate({"name": "paper", "objective": "paper", "repeats": ONCE, **sections})


def small_space() -> Space:
    """Return 30-odd valid configurations of ranks, pools and a library."""
    return Space(
        [
            Integer.range("np", 1, 8, default=8),
            Integer.range("npool", 1, 8, optional=True),
            Choice("blas", ("slow", "fast"), optional=True),
        ],
        [Constraint("whole pools", "np % npool == 0", "every pool has the same number of ranks")],
    )


def definition(space: Space, /, **changes: object) -> Definition:
    """Return a study's definition."""
    values = {
        "objective": "paper",
        "options": {},
        "metrics": (SECONDS,),
        "space": space.to_dict(),
        "identity": {"input": "abc"},
        "facts": {"kpoints": 4},
        "machine": {"host": "here", "cores": 8, "cpu_model": "paper"},
        "machine_identity": {"cpu": "paper"},
        "version": "0",
    }
    return Definition(**{**values, **changes})


class PaperObjective:
    """Write the configuration into the command, where a fake executor reads it."""

    metrics = (SECONDS,)

    def job(self, configuration: Configuration, context: Context) -> Job:
        cores = int(configuration.get("np", 1))
        return Job(("paper", json.dumps(dict(configuration))), context.folder, resources=Resources(cores=cores))

    def progress_reader(self) -> ProgressReader:
        def read(line: str) -> Progress | None:
            raise AssertionError(line)

        return read

    def measure(self, output: Output) -> Measurement:
        raise AssertionError(output)


class PaperExecutor(Executor):
    """Answer at once with the outcome that `model` gives a configuration, and list what was launched."""

    def __init__(self, model: Callable[[dict], Outcome], at_most: int = 10**9) -> None:
        self.launched: list[tuple[int, dict]] = []
        self._model = model
        self._ended: list[tuple[Task, Outcome]] = []
        self._at_most = at_most

    def submit(self, task: Task) -> None:
        if len(self.launched) >= self._at_most:
            raise KeyboardInterrupt
        configuration = json.loads(task.job.argv[1])
        self.launched.append((task.key, configuration))
        outcome = self._model(configuration)
        if outcome.complete and task.cap is not None and outcome.metrics["wall_s"] > task.cap.bound:
            outcome = capped(task.cap.bound)
        self._ended.append((task, outcome))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        ended, self._ended = self._ended, []
        return ended

    def cancel_all(self) -> None:
        self._ended = []

    def leave(self) -> None:
        self._ended = []


class ListDisplay:
    """Keep all lines and the last status."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.status: Status | None = None

    def line(self, text: str) -> None:
        self.lines.append(text)

    def detail(self, text: str) -> None:
        self.lines.append(text)

    def waits(self, text: str) -> None:
        self.lines.append(text)

    def update(self, status: Status) -> None:
        self.status = status

    def close(self) -> None:
        pass


def took(seconds: float) -> Outcome:
    """Return a complete outcome."""
    return Outcome(metrics={"wall_s": seconds}, usage=Usage(elapsed_s=seconds))


def capped(bound: float) -> Outcome:
    """Return the outcome of a run that was stopped because it could no longer win."""
    return Outcome(bound=bound, code="capped", message="had lost", usage=Usage(elapsed_s=bound))


def failed(kind: FailureKind, message: str = "no") -> Outcome:
    """Return a failure."""
    return Outcome(failure=kind, code="x", message=message)


def bowl(configuration: dict) -> Outcome:
    """Return a time that is least for np=4, npool=2, blas=fast."""
    seconds = 1 + abs(configuration["np"] - 4) + abs(configuration.get("npool", 1) - 2)
    return took(seconds - 0.5 * (configuration.get("blas") == "fast"))
