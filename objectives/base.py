"""The objective interface: what a study runs, and how its output is read."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from pathlib import Path
from typing import Any, Literal, Protocol, Self

import numpy as np

from launchers import Job, JobStatus
from objectives.kind import Runs
from objectives.shapes.shape import Shape
from objectives.units import conversion
from spaces import Configuration, Constraint, Parameter
from spaces.mention import Mention
from spaces.parameters.problem import ProblemsError

MetricKind = Literal["time", "rate", "other"]

_TIMES = frozenset({"s", "ms", "us", "ns", "min", "h", "d"})
# Units of energy, power and memory.
_AMOUNTS = frozenset(
    {"mJ", "J", "kJ", "MJ", "Wh", "kWh", "mW", "W", "kW", "MW", "B", "byte", "bytes", "KiB", "MiB", "GiB", "MB", "GB"}
)

# How much longer than the run a program's own clock may measure.
_LONGER, _CLOCKS_DIFFER_S = 1.02, 0.05


@dataclass(frozen=True)
class Metric:
    """A named quantity that an objective measures.

    Args:
        name: Its name in tables and study files.
        unit: Its unit, such as `s`; empty without one.
        direction: Whether lower or higher values are better.
        kind: The conclusion that an unfinished run allows about its value. `time`: the run's time, or that of its main
            part; the value cannot be below the time that has passed. `rate`: work per time; half the pace means half
            the value. `other`: nothing.
    """

    name: str
    unit: str
    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"

    @property
    def is_quality(self) -> bool:
        """Whether it measures the quality or the cost of a result instead of speed: no rate, and no unit or one of an
        amount.
        """
        return self.kind == "other" and (not self.unit or self.unit in _AMOUNTS)

    @property
    def is_seconds(self) -> bool:
        """Whether it is a time of the run in seconds, so that it can be compared with elapsed times."""
        return self.kind == "time" and self.unit == "s"

    def why_not_comparable(self, value: float) -> str | None:
        """Return why a value of the optimised metric cannot be compared by ratio; None if it can."""
        if 0.0 < value < inf:
            return None
        shown = f"{value:g} {self.unit}".rstrip()
        return f"{self.name} is {shown}: what is optimised is compared by ratio, and must be positive and finite"

    def exceeds_run(self, value: float, elapsed_s: float) -> bool:
        """Whether a time of the run is longer than the whole run took, so that it must be something else.

        Args:
            value: The value.
            elapsed_s: How long the run took, in seconds; 0 if that is unknown.
        """
        in_seconds = conversion(self.unit, "s") if self.kind == "time" else None
        if in_seconds is None or elapsed_s <= 0.0:
            return False
        value_s = in_seconds(value)
        # A program may count whole seconds, which are up to one more than passed.
        return value_s > _LONGER * elapsed_s + (1.0 if value_s.is_integer() else _CLOCKS_DIFFER_S)

    @property
    def can_be_forecast(self) -> bool:
        """Whether the pace of an unfinished run predicts its value."""
        return self.kind == "rate" or self.is_seconds

    @property
    def is_pace(self) -> bool:
        """Whether it measures speed: a time to be minimized, or an amount per time to be maximized."""
        if self.direction == "minimize":
            return self.kind == "time" or self.unit in _TIMES
        return self.kind == "rate" or any(self.unit.endswith(f"/{unit}") for unit in _TIMES)

    def compares_with(self, other: "Metric") -> bool:
        """Whether values of both are on one scale: same name, unit and direction."""
        return (self.name, self.unit, self.direction) == (other.name, other.unit, other.direction)

    def cost(self, value: float) -> float:
        """Return a value, or the logarithm of one, with its sign changed if needed so that lower is better."""
        return -value if self.direction == "maximize" else value


@dataclass(frozen=True)
class Progress:
    """One step that a run reported in its live output, such as an SCF iteration or an epoch, and its metrics."""

    step: int
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The result that a run computed. It is compared with the baseline's: a fast run with a wrong result is a failed
    trial.

    Args:
        name: The name of the result.
        value: Its value.
        tolerance: How far another run's value may differ, in `unit`.
        unit: Its unit.
        relative_tolerance: How far it may differ as a share of `value`; the larger of both tolerances applies.
        parts: Several results in one; each is compared with the part of the same name.
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
        """Return by how much another run's value is outside the tolerance; None if it agrees."""
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
    """The results of one valid run.

    Args:
        metrics: Values by the names of metrics.
        answer: The result that the run computed, if the objective reads one.
        details: More about the run, as JSON types; stored with it.
        unused: Parameters that had no effect according to the program's own output.
    """

    metrics: Mapping[str, float]
    answer: Answer | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    unused: tuple[str, ...] = ()


STEPS_VARIABLE = "AUTOTUNE_STEPS"
CHECKPOINT_VARIABLE = "AUTOTUNE_CHECKPOINT"
SEED_VARIABLE = "AUTOTUNE_SEED"
"""The environment variables that pass `steps`, `checkpoint` and `seed` of `Context` to a program that trains in steps.
"""

StepsSource = Literal["placeholder", "variable", "unclear"]
"""How a program that trains in steps gets their number: from a placeholder in its job, which then needs a value; from
`AUTOTUNE_STEPS`, which its source reads; or unclear.
"""

REMARK = "remark"
"""The detail with a sentence about the run for the user, shown with its value."""

AT_END = "the end of the search: it may be higher"
"""The remark of a run whose search for the highest load came to the end of its range."""

CURVE = "curve"
"""The detail with the values of the target metric over the steps of a training: a list of (step, value)."""

LAST_STEP = "last_step"
"""The detail with the last step that a training reported, with or without a value of the metric."""

PARTS = "parts"
"""The detail with the wall-clock seconds of a program's parts, by the names that it prints."""

CYCLES = "cycles"
"""The detail with the number of cycles of a run whose `PARTS` are the times of one cycle."""

POINTS = "points"
"""The detail of a run that measures several points (message sizes): a list of [point, value of the target metric]."""


class FailureKind(StrEnum):
    """Why a run gave no measurement. Only runs with an infrastructure error are worth repeating."""

    INVALID_RESULT = "invalid result"
    OUT_OF_MEMORY = "out of memory"
    TIMED_OUT = "timed out"
    APPLICATION_ERROR = "application error"
    INFRASTRUCTURE_ERROR = "infrastructure error"


class RunFailure(Exception):  # noqa: N818  a failed run is an outcome of a trial, not an error of this program
    """A run that gave no valid measurement.

    Args:
        message: The cause, in the program's own words if it printed any.
        code: The failure within its kind, for tables and statistics.
    """

    kind = FailureKind.APPLICATION_ERROR

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class InvalidResult(RunFailure):
    """The program ended normally, but its answer is missing or wrong."""

    kind = FailureKind.INVALID_RESULT


class OutOfMemory(RunFailure):
    """The program ran out of memory."""

    kind = FailureKind.OUT_OF_MEMORY


class TimedOut(RunFailure):
    """The program reached its time limit."""

    kind = FailureKind.TIMED_OUT


class ApplicationError(RunFailure):
    """The program reported an error, or ended as if it had failed."""

    kind = FailureKind.APPLICATION_ERROR


class InfrastructureError(RunFailure):
    """The configuration is not to blame: the job did not start, the node died, the disk is full."""

    kind = FailureKind.INFRASTRUCTURE_ERROR


@dataclass(frozen=True)
class Output:
    """The output of a run, and how it ended.

    Args:
        stdout: Its standard output.
        stderr: Its standard error.
        status: How it ended.
        folder: Its folder.
        job: The job that was run; None for an output that was found, not made here.
    """

    stdout: str
    stderr: str
    status: JobStatus
    folder: Path
    job: Job | None = None


@dataclass(frozen=True)
class Context:
    """The surroundings of one run of a trial.

    Args:
        folder: The run's own folder; it exists and is empty.
        cpus: The processors reserved for it; empty if the launcher chooses.
        time_limit_s: When to stop the run, in seconds.
        steps: The step after which a training should stop.
        checkpoint: The folder from which a training resumes and in which it keeps its state.
        seed: The seed of programs that draw random numbers.
        known: The metrics of an earlier run of the study, for a search within a run to begin there; empty without one.
    """

    folder: Path
    cpus: tuple[int, ...] = ()
    time_limit_s: float | None = None
    steps: int | None = None
    checkpoint: Path | None = None
    seed: int = 0
    known: Mapping[str, float] = field(default_factory=dict)


ProgressReader = Callable[[str], Progress | None]


def no_progress(_line: str) -> None:
    """Read nothing: the reader of programs that print no progress, whose output is not followed."""


"""Reads the live output of one run line by line; a step may need several lines."""


@dataclass(frozen=True)
class RecordedRun:
    """A run that was made earlier.

    Args:
        elapsed_s: How long its job took.
        lines: Its output with times, as (elapsed_s, line).
        bound: The run was stopped because it had lost; the target metric would not have been better than this.
        setup_s: The part of `elapsed_s` before the program began, such as compilation; caps do not count it.
        worker: The node that made it, if recorded.
    """

    elapsed_s: float
    lines: tuple[tuple[float, str], ...] = ()
    bound: float | None = None
    setup_s: float = 0.0
    worker: str = ""


class Objective(Protocol):
    """A program to run. Its methods start nothing, so objectives are tested without running programs."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics that it measures; the first is optimised."""

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the job for `configuration`, and write its input files into `context.folder`."""

    def progress_reader(self) -> ProgressReader:
        """Return a reader for the live output of one run; `no_progress` if it prints none."""

    def measure(self, output: Output) -> Measurement:
        """Check that the run is valid, then read its metrics.

        Raises:
            RunFailure: The run gave no valid measurement; the message uses the program's own words.
            OSError: The machine cannot read what the run left, so its result is unknown.
        """


RunJob = Callable[[Job], Output]
"""Runs a job to its end; a plan uses it for dry runs."""

Alike = Callable[[Configuration, Configuration, Mapping[str, Any]], bool]
"""Whether a configuration is the same in effect as a measured one, whose run had these details."""


Draw = Callable[[Configuration, np.random.Generator, str], RecordedRun]
"""Draws one of the recorded runs of a configuration, on a worker if one is named."""


@dataclass(frozen=True)
class MemoryNeed:
    """How much memory a run takes on its fullest node, by an estimate of the objective.

    Args:
        bytes_of: The estimate for a configuration, in bytes, or None. It grows with what a run really
            needs, but may be too low.
        room_bytes: The memory of one `place`.
        place: The owner of that memory: the `node`, or the `card` of each process.
        peak: The metric that holds the memory which a run really took there.
        excess_bytes: How much more than estimated runs on other machines took, at least.
        kind: A key of a configuration; how much the estimate is too low is compared only among configurations of one
            kind.
        processes: How many processes of a configuration share the place.
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
    """A number that was looked for in an output: its value, or why it was not found."""

    name: str
    unit: str
    value: float | None
    why: str = ""


@dataclass(frozen=True)
class Readings:
    """The metrics and the answer of one run as far as each could be read on its own, to show to a user."""

    metrics: tuple[Reading, ...] = ()
    answer: Reading | None = None


FigureReader = Callable[[Output], Readings]
"""Reads each figure of a run on its own, so that one missing figure does not hide the others."""


@dataclass(frozen=True)
class Plan:
    """A program made ready to be tuned on this machine: the objective, and the space that it suggests.

    Args:
        objective: The objective.
        parameters: The parameters that it suggests.
        constraints: The rules between them.
        facts: Numbers and words about the workload and the installation, for rules and for the performance model.
        identity: The properties that make measurements comparable, such as the digest of the input and the version of
            the program. A study holds measurements of one identity.
        reading: How output is read (patterns, tolerances). If only this changed, stored outputs are read again.
        output_files: Files of a run's folder that are read besides what it prints.
        mentions: The parameters and expressions that the job mentions; the study file's space must define them.
        notes: Remarks for the user: what was found, what was left out and why.
        name_errors: Returns what is wrong with the names of the study file's parameters.
        alike: Recognises configurations that need no run, since they are the same in effect as a measured one.
        works_in_steps: The program reports steps, can stop after any of them and resume from there.
        steps_source: How the program learns after which step to stop.
        recorded: Draws the runs of a replay; nothing is run then, and time is simulated.
        space_size: How many configurations there were to measure, where that is known.
        installation: The names of the facts about the program's installation; the performance model counts these as
            facts of the machine.
        warnings: Remarks on options that are valid but unwise.
        read_figures: Reads each figure of a run on its own, for a user, also where `measure` fails.
        runs: The maker of the runs; `objectives.registry.plan` fills it in.
        shape: The terms whose sum a run time is, for the performance model.
        memory: The estimate by which configurations that cannot have enough memory are not run.
        workers: Returns the workers on which all of some configurations were recorded.
        metered: The figures of meters without which a run is invalid; names of `launchers.meters.figures.UNITS`.
        is_described: The problem was described and the program not run, so `identity` does not hold the program's
            version.
        stops_after_s: The time after which the input itself stops a run, which has then failed; None without one.
        run_values: Names of values that only a run knows, such as the port of its server: `{port}` in its options.
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
    stops_after_s: float | None = None
    run_values: tuple[str, ...] = ()


class PlanError(ProblemsError):
    """A program cannot be tuned here as asked. Each problem says why and what to do, and its path in the study file if
    any.
    """
