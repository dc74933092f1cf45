"""What a study file says of a command: the `[options]` of `objective = "command"`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from launchers import STDOUT
from objectives.base import MetricKind
from objectives.command_facts import FactOptions
from objectives.figure import Figure
from objectives.file_options import FileOptions
from objectives.mentions.count import Count
from objectives.mentions.words import CommandLine, VariableName


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Read(_Section):
    """Where a number stands: the last match of `pattern`, whose one group it is; or a place in JSON.

    It is looked for in what the run printed (see `Figure`); with `file`, in a file that it wrote in its folder.
    """

    name: str
    pattern: str | None = None
    json_path: str | list[str | int] | None = Field(default=None, alias="json")
    file: str | None = None
    unit: str = ""

    @property
    def figure(self) -> Figure:
        """The number as something that can be read from a run."""
        path = self.json_path
        steps = tuple(path.split(".")) if isinstance(path, str) else tuple(path or ())
        return Figure(self.name, self.pattern, steps, self.file)


class MetricOptions(_Read):
    """A figure that a run shows.

    `kind` says whether it is the time of the run, or a rate of its steps: see `objectives.base.Metric`.
    """

    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"


class AnswerOptions(_Read):
    """The result that every run must agree on, within `tolerance` or `relative_tolerance`, whichever allows more."""

    name: str = "answer"
    tolerance: float | None = Field(default=None, ge=0)
    relative_tolerance: float | None = Field(default=None, ge=0)


class ProgressOptions(_Section):
    """A progress pattern, and the file in the run's folder whose lines it is looked for in: a log, or `stderr`."""

    pattern: str
    file: str = STDOUT


class CommandOptions(_Section):
    """The `[options]` of a study of a command.

    `argv` and the values of `environment` are templates: `{np}` becomes the value of parameter np, `{{` a brace. An
    argument, a group of arguments (a list in the list) or a variable that mentions a parameter without a value is left
    out. A flag is written 1 or 0. `{= 2 * np}` becomes the value of an expression. `ranks`, `threads`,
    `threads_per_core`, `nodes` and `gpus` are numbers, names of parameters or expressions; a run has a core for each
    `threads_per_core` of the product of the first two, on as few nodes as have them if `nodes` says nothing else, and
    with `ranks` the MPI start command starts the program.
    `files` are written into the run's folder, then the commands of `prepare` run there, and then the measured one.
    `success` and `failure` are looked for in what it prints, and in the files `outputs` that it writes. `unused`
    finds names of parameters or variables that the program says to have had no effect. `input` is the name of the
    one of `files` that an input of the user's (`--input`) replaces. `facts` are what a program says of itself, for
    rules.
    """

    argv: CommandLine = Field(min_length=1)
    environment: dict[VariableName, str] = Field(default_factory=dict)
    files: list[FileOptions] = Field(default_factory=list)
    prepare: list[CommandLine] = Field(default_factory=list)
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
        """What a run is given, by the option that says how many."""
        return {name: getattr(self, name) for name in ("ranks", "threads", "threads_per_core", "nodes", "gpus")}

    @property
    def progress_pattern(self) -> str | None:
        """The regular expression that finds how far a run is."""
        return self.progress.pattern if isinstance(self.progress, ProgressOptions) else self.progress

    @property
    def progress_file(self) -> str:
        """The file in the run's folder in which progress is looked for."""
        return self.progress.file if isinstance(self.progress, ProgressOptions) else STDOUT
