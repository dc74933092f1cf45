"""The objective seam: what is run, and how its output is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from launchers import Job, JobStatus
from objectives.kind import Runs
from objectives.shapes.shape import Shape
from spaces import Configuration, Constraint, Parameter
from spaces.mention import Mention
from spaces.parameters.problem import ProblemsError

MetricKind = Literal["time", "rate", "other"]

_TIMES = frozenset({"s", "ms", "us", "ns", "min", "h", "d"})
# Of energy, power and memory.
_AMOUNTS = frozenset(
    {"mJ", "J", "kJ", "MJ", "Wh", "kWh", "mW", "W", "kW", "MW", "B", "byte", "bytes", "KiB", "MiB", "GiB", "MB", "GB"}
)


@dataclass(frozen=True)
class Metric:
    """A named quantity that an objective measures.

    The kind tells what may be concluded from a run that still goes on. `time`: the run's time or that of its main part,
    so that a run cannot have a better value than the time it has taken already. `rate`: work per time, so that a run
    whose steps come half as fast has half of it. `other`: nothing.
    """

    name: str
    unit: str
    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"

    @property
    def is_quality(self) -> bool:
        """Whether it tells how good or how dear a result is, not how fast it came.

        It is no rate, and has no unit, or that of an amount.
        """
        return self.kind == "other" and (not self.unit or self.unit in _AMOUNTS)

    @property
    def is_seconds(self) -> bool:
        """Whether it is a time of the run in seconds, the unit of elapsed times: those may be compared with it."""
        return self.kind == "time" and self.unit == "s"

    @property
    def can_be_forecast(self) -> bool:
        """Whether its value may be foretold from the pace of a run."""
        return self.kind == "rate" or self.is_seconds

    @property
    def is_pace(self) -> bool:
        """Whether it tells how long something takes: a time to be short, or what is done in a time to be much."""
        if self.direction == "minimize":
            return self.kind == "time" or self.unit in _TIMES
        return self.kind == "rate" or any(self.unit.endswith(f"/{unit}") for unit in _TIMES)

    def compares_with(self, other: "Metric") -> bool:
        """Whether values of both are of one scale: the same name, unit and direction."""
        return (self.name, self.unit, self.direction) == (other.name, other.unit, other.direction)

    def cost(self, value: float) -> float:
        """Return a value, or a logarithm of one, so that a lower one is better."""
        return -value if self.direction == "maximize" else value


@dataclass(frozen=True)
class Progress:
    """A sign of life read from one line of live output: an SCF iteration, an epoch."""

    step: int
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The result that a run computed, for comparison with the baseline's: a fast wrong answer is a failed trial.

    Others may differ from it by `tolerance`, or by `relative_tolerance` of its value, whichever is more.
    Several results are `parts`, each compared with the one of its name.
    """

    name: str
    value: float
    tolerance: float
    unit: str = ""
    relative_tolerance: float = 0.0
    parts: tuple["Answer", ...] = ()

    def with_tolerances_of(self, other: Self) -> Self:
        """Return this answer with the tolerances of another one."""
        others = {part.name: part for part in other.parts}
        parts = tuple(part.with_tolerances_of(others.get(part.name, part)) for part in self.parts)
        return replace(self, tolerance=other.tolerance, relative_tolerance=other.relative_tolerance, parts=parts)

    def disagreement(self, value: float) -> str | None:
        """Return how another run's value differs by more than is allowed; None if it agrees."""
        difference, relative = abs(value - self.value), self.relative_tolerance * abs(self.value)
        if difference <= max(self.tolerance, relative):
            return None
        if relative > self.tolerance:
            return (
                f"they differ by {difference / abs(self.value):.2g} (relative), more than {self.relative_tolerance:.2g}"
            )
        return f"they differ by {difference:.2g}, more than {self.tolerance:.2g}"


@dataclass(frozen=True)
class Measurement:
    """What one valid run showed. `details` is JSON-able and kept with the run for later reading.

    `unused` are parameters that had no effect, as the program itself says.
    """

    metrics: Mapping[str, float]
    answer: Answer | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


STEPS_VARIABLE = "AUTOTUNE_STEPS"
CHECKPOINT_VARIABLE = "AUTOTUNE_CHECKPOINT"
SEED_VARIABLE = "AUTOTUNE_SEED"
"""The variables by which a program that works in steps may be told of `steps`, `checkpoint` and `seed` of `Context`."""

StepsSource = Literal["placeholder", "variable", "unclear"]
"""How a program that works in steps learns after which to stop: by a placeholder of its job, which then needs the
number; by the variable, as its own code says; or nobody knows.
"""

REMARK = "remark"
"""The detail of a run that has something to tell the person who watches: a sentence that is shown with its value."""

CURVE = "curve"
"""The detail of a program that works in steps that holds the values of the target metric, a list of (step, value)."""

LAST_STEP = "last_step"
"""The detail that holds the last step that it told, with the metric or without."""

PARTS = "parts"
"""The detail of a program that times its own parts: wall-clock seconds by the names that it gives them."""

CYCLES = "cycles"
"""The detail of a program whose parts are those of one cycle of its run: how many cycles the run had."""

POINTS = "points"
"""The detail of a program that one run measures at several points (message sizes): a list of [point, value], the values
those of the target metric."""


class FailureKind(StrEnum):
    """Why a run gave no measurement. Only an infrastructure error is worth repeating."""

    INVALID_RESULT = "invalid result"
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    APPLICATION_ERROR = "application error"
    INFRASTRUCTURE_ERROR = "infrastructure error"


class RunFailure(Exception):  # noqa: N818  a failed run is an outcome of a trial, not an error of this program
    """A run that gave no valid measurement; `code` names the failure within its kind, for tables and statistics."""

    kind = FailureKind.APPLICATION_ERROR

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class InvalidResult(RunFailure):
    """The program ended well, but its answer is missing or wrong."""

    kind = FailureKind.INVALID_RESULT


class OutOfMemory(RunFailure):
    """The program did not have enough memory."""

    kind = FailureKind.OUT_OF_MEMORY


class TimedOut(RunFailure):
    """The program ran into its time limit."""

    kind = FailureKind.TIMED_OUT


class ApplicationError(RunFailure):
    """The program said that it failed, or ended as if it had."""

    kind = FailureKind.APPLICATION_ERROR


class InfrastructureError(RunFailure):
    """Not the configuration's fault: the job could not be started, the node died, the disk is full."""

    kind = FailureKind.INFRASTRUCTURE_ERROR


@dataclass(frozen=True)
class Output:
    """What a run left behind. `job` is what was run, None where nobody knows: an output that was found."""

    stdout: str
    stderr: str
    status: JobStatus
    folder: Path
    job: Job | None = None


@dataclass(frozen=True)
class Context:
    """Where and with what one trial runs. `folder` exists, is empty and is the trial's alone.

    Programs that work in steps (epochs) are asked to stop after `steps`, and to go on from the folder `checkpoint`;
    those that draw random numbers to use `seed`.
    """

    folder: Path
    cpus: tuple[int, ...] = ()
    time_limit_s: float | None = None
    steps: int | None = None
    checkpoint: Path | None = None
    seed: int = 0


ProgressReader = Callable[[str], Progress | None]
"""Reads the live output of one run line by line; a line may complete a sign that earlier ones began."""


@dataclass(frozen=True)
class RecordedRun:
    """A run that was made before: how long its job took, and what it printed when, as (elapsed_s, line).

    With a `bound` it was stopped since it had lost: the target metric would not have been better than that. `setup_s`
    of the time went by before the program began (compilation), which no cap counts. `worker` is the node that made it,
    where that was recorded.
    """

    elapsed_s: float
    lines: tuple[tuple[float, str], ...] = ()
    bound: float | None = None
    setup_s: float = 0.0
    worker: str = ""


class Objective(Protocol):
    """Pure on both sides, so that it is tested without running anything. The first metric is the one optimised."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The declared metrics; the first is optimised."""

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the job for `configuration`; its input files are written into `context.folder`."""

    def progress_reader(self) -> ProgressReader:
        """Return a reader for the live output of one run."""

    def measure(self, output: Output) -> Measurement:
        """Check that the run is valid, then read its metrics.

        Raises:
            RunFailure: the run gave no valid measurement; the message is in the program's own words.
            OSError: the machine cannot read what the run left, so nobody knows.
        """


RunJob = Callable[[Job], Output]
"""Runs a job to its end: what a plan needs for a dry run."""

Alike = Callable[[Configuration, Configuration, Mapping[str, Any]], bool]
"""Whether a configuration is the same in effect as a measured one, whose run had these details."""


Draw = Callable[[Configuration, np.random.Generator, str], RecordedRun]
"""Draws one of the recorded runs of a configuration, on a worker if one is named."""


@dataclass(frozen=True)
class MemoryNeed:
    """How much memory a run takes on its fullest node, by the program's own words; `room_bytes` are those of a node.

    It grows with what a run really needs, but may be too low; None where the program cannot say it. `place` is what has
    the room, where it is no node but the `card` of each process. `peak` is the metric of every run that tells what it
    took there. Runs elsewhere took `excess_bytes` more than the program says, at least. How much too low it is may
    depend on the `kind` of configuration, so that only those of one kind are compared; `processes` share the place.
    """

    bytes_of: Callable[[Configuration], float | None]
    room_bytes: int
    place: str = "node"
    peak: str = "peak_memory_bytes"
    excess_bytes: float = 0.0
    kind: Callable[[Configuration], object] = lambda _: None
    processes: Callable[[Configuration], int] = lambda _: 1


@dataclass(frozen=True)
class Reading:
    """A number that was looked for: its value, or why it is not there."""

    name: str
    unit: str
    value: float | None
    why: str = ""


@dataclass(frozen=True)
class Readings:
    """What a person may see of one run: metrics, and the answer, as far as the objective reads them by themselves."""

    metrics: tuple[Reading, ...] = ()
    answer: Reading | None = None


FigureReader = Callable[[Output], Readings]
"""Reads each figure of a run by itself."""


@dataclass(frozen=True)
class Plan:
    """A program made ready to be tuned on this machine: the objective and the space it suggests.

    `facts` are those of the workload and of the program's installation, for constraints and for the performance
    model; `installation` names the latter, which a performance model counts as the machine's; `notes` are remarks for
    the person (what was found, what was left out and why); `identity` says what makes measurements comparable (input
    digest, program version): a study holds measurements of one identity; `reading` says how output is read (patterns,
    tolerances): where only that is another, kept outputs are read again. `reads` are the files of a run's folder that
    are read beside what it prints; `mentioned` are the parameters and expressions that the job mentions, which the
    study file's space must know; `unknown` says what is wrong with names of its parameters. `alike` saves runs of
    configurations that could show nothing new. A program that `works_in_steps` tells its progress, stops at the step
    that it is asked to (`steps_told` says how), and goes on from there. With `recorded` nothing is run: its runs are
    drawn from what was measured before, with simulated times, on the `workers` that all of some configurations were
    recorded on; `space_size` is how many configurations there were to be
    measured, where that is known. `warnings` are remarks on options that are right and yet unwise. `looks` reads
    each figure of a run by itself, for a person, also where `measure` fails as a whole. `runs` says who makes the runs;
    the registry of objectives knows it. `shape` is what a run time is a sum of, for the performance model. By `memory`
    what surely lacks it is not run. `metered` are the figures of meters that a run must have to be valid
    (`launchers.meters.figures.UNITS`). Of a `described` problem the program was not asked: its `identity` does not say
    which version it is.
    """

    objective: Objective
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    facts: Mapping[str, int | float | str | bool]
    identity: Mapping[str, str]
    reading: Mapping[str, str] = field(default_factory=dict)
    output_files: tuple[str, ...] = ()
    mentions: tuple[Mention, ...] = ()
    notes: tuple[str, ...] = ()
    name_errors: Callable[[Iterable[str]], list[str]] | None = None
    alike: Alike | None = None
    works_in_steps: bool = False
    steps_source: StepsSource = "variable"
    recorded: Draw | None = None
    space_size: int | None = None
    installation: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    read_figures: FigureReader | None = None
    runs: Runs = "launched"
    shape: Shape | None = None
    memory: MemoryNeed | None = None
    workers: Callable[[Sequence[Configuration]], Sequence[str]] = lambda _: ()
    metered: tuple[str, ...] = ()
    is_described: bool = False


class PlanError(ProblemsError):
    """A program cannot be tuned here as asked; each problem says why and what to do, with its path if it has one."""
