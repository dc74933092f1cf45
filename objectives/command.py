"""Any command as an objective: a study file says how parameters reach it and how its output is read."""

import re
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from launchers import EndReason, Job, MpiStart, Resources
from objectives.base import (
    Answer,
    ApplicationError,
    Context,
    InvalidResult,
    Measurement,
    Metric,
    MetricKind,
    Output,
    Plan,
    PlanError,
    Progress,
    ProgressReader,
    RunJob,
)
from objectives.digest import file_digest
from objectives.ending import check_disk, check_ending
from objectives.templates import filled_in, names_in, template_errors
from spaces import Configuration

ELAPSED = Metric("elapsed_s", "s", kind="time")

# A line of a program that prints without end may be as long as its output.
_MESSAGE_CHARACTERS = 400


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MetricOptions(_Section):
    """A figure in the output: the last match of `pattern`, whose one group is a number.

    `kind` says whether it is the time of the run, or a rate of its steps: see `objectives.base.Metric`.
    """

    name: str
    pattern: str
    unit: str = ""
    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"


class AnswerOptions(_Section):
    """The result that every run must agree on, within `tolerance`."""

    name: str = "answer"
    pattern: str
    tolerance: float = Field(ge=0)
    unit: str = ""


class CommandOptions(_Section):
    """The `[options]` of a study of a command.

    `argv` and the values of `environment` are templates: `{np}` becomes the value of parameter np, `{{` a brace. An
    argument or variable that mentions a parameter without a value is left out. A flag is written 1 or 0. `ranks` and
    `threads` are numbers or names of parameters; with `ranks` the MPI start command starts the program. `unused` finds
    names of parameters or variables that the program says to have had no effect.
    """

    argv: list[str] = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)
    ranks: int | str | None = None
    threads: int | str = 1
    success: list[str] = Field(default_factory=list)
    failure: list[str] = Field(default_factory=list)
    metrics: list[MetricOptions] = Field(default_factory=list)
    answer: AnswerOptions | None = None
    progress: str | None = None
    unused: list[str] = Field(default_factory=list)


@dataclass(frozen=True)
class CommandObjective:
    """Runs a command and reads its output with regular expressions."""

    options: CommandOptions

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the study file; the time of the run when there are none."""
        declared = tuple(Metric(m.name, m.unit, m.direction, m.kind) for m in self.options.metrics)
        return declared or (ELAPSED,)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the command with the configuration's values in their places."""
        options = self.options
        filled = [filled_in(word, configuration) for word in options.argv]
        environment = {name: filled_in(value, configuration) for name, value in options.environment.items()}
        threads = _number(options.threads, configuration)
        ranks = None if options.ranks is None else _number(options.ranks, configuration)
        return Job(
            argv=tuple(word for word in filled if word is not None),
            folder=context.folder,
            environment={
                "OMP_NUM_THREADS": str(threads),
                **{name: value for name, value in environment.items() if value is not None},
            },
            mpi=None if ranks is None else MpiStart(ranks),
            resources=Resources(cores=threads * (ranks or 1), cpus=context.cpus),
            time_limit_s=context.time_limit_s,
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of the number that the progress pattern finds in a line."""

        def read(line: str) -> Progress | None:
            match = re.search(self.options.progress, line) if self.options.progress else None
            step = _float(match) if match else None
            return Progress(int(step)) if step is not None and abs(step) < 2**53 else None

        return read

    def measure(self, output: Output) -> Measurement:
        """Check the run, then read its figures."""
        check_ending(output)
        try:
            return self._read(output)
        except InvalidResult:
            # Many a program does not notice that what it prints is not written.
            check_disk(output)
            raise

    def _read(self, output: Output) -> Measurement:
        self._check(output)
        figures = {m.name: _figure(m.name, m.pattern, output.stdout) for m in self.options.metrics}
        return Measurement(
            metrics=figures or {ELAPSED.name: output.status.usage.elapsed_s},
            answer=self._answer(output.stdout),
            unused=self._unused(f"{output.stdout}\n{output.stderr}"),
        )

    def _unused(self, text: str) -> tuple[str, ...]:
        said = [match for pattern in self.options.unused for match in re.findall(pattern, text, re.MULTILINE)]
        # A program calls a variable by its own name; the parameters behind it are those of its template.
        behind = {name: names_in(template) for name, template in self.options.environment.items()}
        return tuple(sorted({parameter for name in said for parameter in behind.get(name, {name})}))

    def _answer(self, text: str) -> Answer | None:
        wanted = self.options.answer
        if wanted is None:
            return None
        return Answer(wanted.name, _figure(wanted.name, wanted.pattern, text), wanted.tolerance, wanted.unit)

    def _check(self, output: Output) -> None:
        text = f"{output.stdout}\n{output.stderr}"
        for pattern in self.options.failure:
            if match := re.search(pattern, text, re.MULTILINE):
                raise ApplicationError(_line_of(match, text), code="failure-pattern")
        status = output.status
        if status.reason is EndReason.EXITED and status.exit_code != 0:
            lines = text.rstrip()[-_MESSAGE_CHARACTERS:].splitlines()
            msg = f"ended with exit code {status.exit_code}: {lines[-1].strip() if lines else 'no output'}"
            raise ApplicationError(msg, code="exit-code")
        for pattern in self.options.success:
            if not re.search(pattern, text, re.MULTILINE):
                msg = f"the output has no match of {pattern!r}, which a successful run prints"
                raise InvalidResult(msg, code="no-success-pattern")


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Check the options; the space of a command is its study file's.

    Raises:
        PlanError: the options have errors: all of them, each with its path.
    """
    del machine, run_job, folder
    try:
        checked = CommandOptions.model_validate(options)
    except ValidationError as error:
        lines = [
            f"{item['msg']} @ options.{'.'.join(map(str, item['loc']))}" for item in error.errors(include_url=False)
        ]
        raise PlanError("\n".join(lines)) from None
    errors = [*_pattern_errors(checked), *_template_errors(checked)]
    program = checked.argv[0]
    found = shutil.which(program)
    if "/" in program and found is not None:
        # Each run has a folder of its own, from where a relative path leads nowhere.
        checked = checked.model_copy(update={"argv": [str(Path(found).absolute()), *checked.argv[1:]]})
    if "{" not in program and found is None:
        errors.append(f"program {program!r} is not there; give its full path, or `module load` it @ options.argv.0")
    if errors:
        raise PlanError("\n".join(errors))
    return Plan(
        objective=CommandObjective(checked),
        parameters=(),
        constraints=(),
        facts={},
        mentioned=tuple(sorted(placeholders(checked))),
        identity=_identity(checked, None if "{" in program else found),
    )


def _identity(options: CommandOptions, program: str | None) -> dict[str, str]:
    """Return what makes runs comparable; `program` is the file that is run, None if a parameter chooses it."""
    file = {} if program is None else {"program": f"{Path(program).name} sha256:{file_digest(Path(program))}"}
    return {"command": " ".join(options.argv), **file, "metrics": ",".join(m.name for m in options.metrics)}


def placeholders(options: CommandOptions) -> set[str]:
    """Return the names of the parameters that the options mention."""
    templates = [*options.argv, *options.environment.values()]
    named = {name for text in templates for name in names_in(text)}
    return named | {value for value in (options.ranks, options.threads) if isinstance(value, str)}


def _number(value: int | str, configuration: Configuration) -> int:
    return value if isinstance(value, int) else int(configuration.get(value, 1))


def _figure(name: str, pattern: str, text: str) -> float:
    # One match is kept, not all: there may be millions.
    last = deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)
    value = _float(last[0]) if last else None
    if value is None:
        msg = f"no {name} in the output: nothing matches {pattern!r}"
        raise InvalidResult(msg, code="no-metric")
    return value


def _float(match: re.Match[str]) -> float | None:
    try:
        value = float(match.group(1))
    except (TypeError, ValueError):
        return None
    return value if abs(value) < float("inf") else None


def _line_of(match: re.Match[str], text: str) -> str:
    start = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    return text[start : end if end >= 0 else None].strip()[:_MESSAGE_CHARACTERS]


def _pattern_errors(options: CommandOptions) -> Sequence[str]:
    patterns = [
        *((f"options.success.{i}", text, 0) for i, text in enumerate(options.success)),
        *((f"options.failure.{i}", text, 0) for i, text in enumerate(options.failure)),
        *((f"options.metrics.{i}.pattern", m.pattern, 1) for i, m in enumerate(options.metrics)),
        *([("options.answer.pattern", options.answer.pattern, 1)] if options.answer else []),
        *([("options.progress", options.progress, 1)] if options.progress else []),
        *((f"options.unused.{i}", text, 1) for i, text in enumerate(options.unused)),
    ]
    found = []
    for path, text, groups in patterns:
        try:
            compiled = re.compile(text)
        except re.error as error:
            found.append(f"{text!r} is not a regular expression: {error} @ {path}")
            continue
        if groups and compiled.groups != groups:
            found.append(f"{text!r} needs exactly one group, around the number; it has {compiled.groups} @ {path}")
    return found


def _template_errors(options: CommandOptions) -> Sequence[str]:
    return template_errors(
        [
            *((f"options.argv.{i}", text) for i, text in enumerate(options.argv)),
            *((f"options.environment.{name}", text) for name, text in options.environment.items()),
        ]
    )
