"""Any training script: the study file says how it is started, and which metric of its progress lines counts."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from launchers import STDOUT
from launchers.software.digest import file_digest
from objectives.base import STEPS_VARIABLE, Metric, Plan, PlanError, RunJob, StepsSource
from objectives.file_options import (
    FileOptions,
    RunFile,
    files_identity,
    making_programs,
    mentions_in_files,
    read_run_files,
)
from objectives.mentions.count import Count, count_expressions, count_mentions
from objectives.mentions.nodes import Nodes
from objectives.mentions.templates import mentions_in, template_errors
from objectives.mentions.words import (
    CommandLine,
    VariableName,
    Word,
    as_text,
    environment_text,
    flatten,
    is_file,
    map_words,
    missing_program,
    program_of,
    word_places,
)
from objectives.options import read_options
from objectives.training.direction import Direction, direction_of
from objectives.training.gap import GAP
from objectives.training.objective import PLACEHOLDERS, STEPS, TrainingObjective
from objectives.training.pattern import pattern_errors
from objectives.training.progress import KINDS, ReaderKind
from spaces.mention import Mention
from spaces.parameters.problem import Problem


class ProgressMetric(BaseModel):
    """A metric of the progress lines, by its name there; a name alone is enough.

    Without a `direction`, the name must show which values are better.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    unit: str = ""
    direction: Direction | None = None

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given

    @model_validator(mode="after")
    def _has_direction(self) -> "ProgressMetric":
        if self.direction is None and direction_of(self.name) is None:
            how = f'{{ name = "{self.name}", direction = "minimize" }} (or "maximize")'
            msg = f"the name {self.name!r} does not say which values are better: write {how}"
            raise ValueError(msg)
        return self

    def metric(self) -> Metric:
        """Return it as a metric of the objective."""
        direction = self.direction or direction_of(self.name)
        assert direction is not None
        return Metric(self.name, self.unit, direction)


class ProgressFile(BaseModel):
    """Progress lines in standard error, where tqdm and Python's `logging` write."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    pattern: str | list[str] = "auto"
    file: Literal["stdout", "stderr"]


# Signs that a script reads its number of steps: the variable, or our helper that reads it.
_SIGNS = (STEPS_VARIABLE.encode(), b"last_step(")
_SCRIPT_BYTES = 2**20


class TrainingOptions(BaseModel):
    """The `[options]` of a study of a training script.

    `argv`, `files` and the values of `environment` are templates as in a command; `{steps}`, `{seed}` and
    `{checkpoint}` stand for what is asked of a run.

    Args:
        argv: The command.
        environment: Its environment variables.
        files: Files that are written into the run's folder.
        metric: The metric that is optimised: a name or a table.
        metrics: Metrics that are recorded besides it.
        trained: The name of `metric` on the training data; it is recorded, with the gap between both.
        progress: The form of the progress lines, or one or several regular expressions (see docs/training.md), or a
            table with these and the stream that has the lines.
        first_step: The number of the first step in the progress lines.
        target: Optimise the time until the metric reaches this.
        budget_s: Stop a run after this many seconds; what it has reached counts.
        cores: The cores of a run: a number, the name of a parameter or an expression.
        gpus: The GPUs of a run.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    argv: CommandLine = Field(min_length=1)
    environment: dict[VariableName, str] = Field(default_factory=dict)
    files: list[FileOptions] = Field(default_factory=list)
    metric: ProgressMetric
    metrics: list[ProgressMetric] = Field(default_factory=list)
    trained: str | None = None
    progress: str | list[str] | ProgressFile = "auto"
    first_step: Literal[0, 1] = 1
    target: float | None = None
    budget_s: float | None = Field(default=None, gt=0)
    cores: Count = 1
    gpus: int = Field(default=0, ge=0)

    @property
    def form(self) -> ReaderKind | tuple[str, ...]:
        """The named form of the progress lines, or the patterns."""
        given = self.progress.pattern if isinstance(self.progress, ProgressFile) else self.progress
        if isinstance(given, list):
            return tuple(given)
        return next((kind for kind in KINDS if kind == given), (given,))

    @property
    def progress_file(self) -> str:
        """The stream that has the progress lines."""
        return self.progress.file if isinstance(self.progress, ProgressFile) else STDOUT

    @property
    def templates(self) -> list[tuple[str, str]]:
        """The words with placeholders, each with its path."""
        return [
            *word_places(self.argv, "options.argv"),
            *((f"options.environment.{name}", text) for name, text in self.environment.items()),
        ]


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Check the options. The study file defines the space of a training script.

    Raises:
        PlanError: The options have errors; all are reported, each with its path.
    """
    del run_job, folder
    checked = read_options(TrainingOptions, options, "training")
    files, errors = read_run_files(checked.files, make=bool(machine.get("makes_files", True)))
    errors += template_errors(checked.templates)
    errors += _progress_errors(checked)
    errors += _errors_of_training(checked)
    program = shutil.which(program_of(checked.argv))
    errors += [
        Problem(why, f"options.{place}")
        for place, called in (("argv.0", program_of(checked.argv)), *making_programs(checked.files))
        if (why := missing_program(called))
    ]
    mentioned: list[Mention] = []
    if not errors:
        mentioned = [mention for place, text in checked.templates for mention in mentions_in(text, place)]
        mentioned += mentions_in_files(checked.files, files)
    in_steps = checked.target is None and checked.budget_s is None
    if not in_steps and any(mention.text == STEPS for mention in mentioned):
        msg = f"{{{STEPS}}} has no value: a run ends at its target or time budget; leave it out"
        errors.append(Problem(msg, "options"))
    if errors or program is None:
        raise PlanError(errors)
    # Runs start in folders of their own, where a relative path would not be found.
    argv: list[Word] = [
        str(Path(program).absolute()),
        *map_words(checked.argv[1:], lambda word: str(Path(word).absolute()) if is_file(word) else word),
    ]
    return Plan(
        objective=TrainingObjective(
            tuple(argv),
            checked.metric.metric(),
            tuple(metric.metric() for metric in checked.metrics),
            checked.environment,
            checked.form,
            checked.cores,
            checked.gpus,
            checked.target,
            checked.budget_s,
            files,
            checked.first_step,
            Nodes.of(machine),
            replace(checked.metric.metric(), name=checked.trained) if checked.trained else None,
            progress_file=checked.progress_file,
        ),
        parameters=(),
        constraints=(),
        facts={"gpus": checked.gpus},
        mentions=(*(one for one in mentioned if one.text not in PLACEHOLDERS), *count_mentions(cores=checked.cores)),
        identity=_identity(checked, flatten(argv), files),
        reading=_reading(checked),
        name_errors=_name_errors,
        works_in_steps=in_steps,
        steps_source=_steps_source(flatten(argv), mentioned),
    )


def _progress_errors(options: TrainingOptions) -> Iterator[Problem]:
    form = options.form
    if isinstance(form, str):
        return
    if not form:
        yield Problem(f"no pattern is given; known forms: {', '.join(KINDS)}", "options.progress")
        return
    names = [metric.name for metric in (options.metric, *options.metrics)]
    names += [options.trained] if options.trained else []
    for index, message in pattern_errors(form, names, KINDS):
        given, place = options.progress, "options.progress"
        if isinstance(given, ProgressFile):
            given, place = given.pattern, "options.progress.pattern"
        yield Problem(message, f"{place}.{index}" if isinstance(given, list) else place)


def _errors_of_training(options: TrainingOptions) -> Iterator[Problem]:
    recorded = {metric.name for metric in (options.metric, *options.metrics)}
    for name in (options.trained, GAP):
        if options.trained and name in recorded:
            msg = f"{name!r} is recorded because of `trained` = {options.trained!r}; leave it out of metric and metrics"
            yield Problem(msg, "options.trained")


def _name_errors(parameters: Iterable[str]) -> list[str]:
    placeholders = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
    return [
        f"no parameter of a training can be called {name!r}: {placeholders} are what a run is asked for; give another "
        "name"
        for name in parameters
        if name in PLACEHOLDERS
    ]


def _steps_source(argv: Sequence[str], mentioned: Iterable[Mention]) -> StepsSource:
    if any(mention.text == STEPS for mention in mentioned):
        return "placeholder"
    return "variable" if any(_mentions_variable(Path(word)) for word in argv) else "unclear"


def _mentions_variable(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            text = opened.read(_SCRIPT_BYTES)
    except (OSError, ValueError):
        return False
    return any(sign in text for sign in _SIGNS)


def _reading(options: TrainingOptions) -> dict[str, str]:
    form = options.form
    text = form if isinstance(form, str) else "; ".join(form)
    trained = {"trained": options.trained} if options.trained else {}
    text += "" if options.progress_file == STDOUT else f", in {options.progress_file}"
    return {"progress": text + ("" if options.first_step else ", from step 0"), **trained}


def _identity(options: TrainingOptions, argv: Sequence[str], files: Sequence[RunFile]) -> dict[str, str]:
    # The interpreter and its script; other files may be data or output.
    program = [argv[0], *[word for word in argv[1:] if is_file(word)][:1]]
    metric = options.metric.metric()
    return {
        "command": as_text(options.argv),
        "program": ", ".join(f"{Path(word).name} sha256:{file_digest(Path(word))}" for word in program),
        "metric": f"{metric.name} ({metric.direction})",
        "environment": environment_text(options.environment),
        "until": f"target {options.target}, budget {options.budget_s} s",
        **count_expressions(cores=options.cores),
        **files_identity(files),
    }
