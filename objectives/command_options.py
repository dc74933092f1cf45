"""The `[options]` of `objective = "command"`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from launchers import STDOUT
from objectives.base import MetricKind
from objectives.command_facts import FactOptions
from objectives.figure import Figure
from objectives.file_options import FileOptions
from objectives.mentions.count import Count
from objectives.mentions.words import CommandLine, VariableName
from objectives.server_options import ServerOptions

SEED = "seed"
"""The name of the seed of a run with a server: `{seed}`, for loads that do not read AUTOTUNE_SEED."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Read(_Section):
    """A number to read: the group of the last match of `pattern`, or a place in JSON.

    It is looked for in what the run printed (see `Figure`), or with `file` in a file that the run wrote in its folder.
    A group of the pattern that is called `unit` finds the unit that is converted to the declared one.
    """

    name: str
    pattern: str | None = None
    json_path: str | list[str | int] | None = Field(default=None, alias="json")
    file: str | None = None
    unit: str = ""

    @property
    def figure(self) -> Figure:
        """The number as something to read from a run's output."""
        path = self.json_path
        steps = tuple(path.split(".")) if isinstance(path, str) else tuple(path or ())
        return Figure(self.name, self.pattern, steps, self.file, self.unit)


class MetricOptions(_Read):
    """A metric of a run. For `kind` see `objectives.base.Metric`."""

    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"


class AnswerOptions(_Read):
    """The result on which all runs must agree, within `tolerance` or `relative_tolerance`, whichever allows more."""

    name: str = "answer"
    tolerance: float | None = Field(default=None, ge=0)
    relative_tolerance: float | None = Field(default=None, ge=0)


class ProgressOptions(_Section):
    """A progress pattern, and the file of the run's folder in whose lines it is looked for: a log, or `stderr`."""

    pattern: str
    file: str = STDOUT


class CommandOptions(_Section):
    """The `[options]` of a study of a command.

    `argv`, `files` and the values of `environment` are templates: `{np}` becomes the value of parameter np, `{= 2 *
    np}` that of an expression, `{{` a brace; a flag becomes 1 or 0. An argument, a group of arguments (a list in the
    list) or a variable that mentions a parameter without a value is left out. Counts are numbers, names of parameters
    or expressions.

    Args:
        argv: The command.
        environment: Its environment variables.
        files: Files that are written into the run's folder first.
        prepare: Commands that run in that folder before the measured one.
        server: The server that the command is the load of.
        ranks: MPI ranks; the MPI start command then starts the program.
        threads: Threads of each rank. A run has `ranks * threads / threads_per_core` cores.
        threads_per_core: Hardware threads used of each core.
        nodes: Nodes of a run; without it, as few as have the cores.
        gpus: GPUs of a run.
        success: Patterns that must match in what the program prints, or in `outputs`.
        failure: Patterns that mark a failed run.
        outputs: Files that the program writes and that are searched, too.
        metrics: The metrics; the first is optimised.
        answer: The result that is compared with the default's.
        progress: The pattern that finds how far a run is.
        unused: Patterns that find names of parameters or variables which had no effect according to the program.
        input: The name of the file in `files` that a user's input (`--input`) replaces.
        facts: Facts that a program reports about itself, for rules.
    """

    argv: CommandLine = Field(min_length=1)
    environment: dict[VariableName, str] = Field(default_factory=dict)
    files: list[FileOptions] = Field(default_factory=list)
    prepare: list[CommandLine] = Field(default_factory=list)
    server: ServerOptions | None = None
    ranks: Count | None = None
    threads: Count = 1
    threads_per_core: Count = 1
    nodes: Count | None = None
    gpus: Count | None = None
    success: list[str] = Field(default_factory=list)
    failure: list[str] = Field(default_factory=list)
    outputs: list[str] = Field(default_factory=list)
    metrics: list[MetricOptions] = Field(default_factory=list)
    answer: AnswerOptions | None = None
    progress: str | ProgressOptions | None = None
    unused: list[str] = Field(default_factory=list)
    input: str | None = None
    facts: dict[str, FactOptions] = Field(default_factory=dict)

    @property
    def counts(self) -> dict[str, Count | None]:
        """The counts of a run, by the names of the options."""
        return {name: getattr(self, name) for name in ("ranks", "threads", "threads_per_core", "nodes", "gpus")}

    @property
    def run_values(self) -> tuple[str, ...]:
        """The names of the values that only a run knows: its seed, and the port of its server."""
        return (SEED, *self.server.run_values) if self.server is not None else ()

    @property
    def progress_pattern(self) -> str | None:
        """The pattern that finds how far a run is."""
        return self.progress.pattern if isinstance(self.progress, ProgressOptions) else self.progress

    @property
    def progress_file(self) -> str:
        """The file in the run's folder that is searched for progress."""
        return self.progress.file if isinstance(self.progress, ProgressOptions) else STDOUT
