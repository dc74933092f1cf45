"""Any training script: a study file says how it is started, and which metric of its progress counts."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from objectives.base import Metric, Plan, PlanError, RunJob
from objectives.digest import file_digest
from objectives.mentions.count import Count, counts, expressions
from objectives.mentions.templates import mentioned_in, template_errors
from objectives.options import read_options
from objectives.training.objective import TrainingObjective
from objectives.training.progress import ReaderKind
from spaces.parameters.problem import Problem


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ProgressMetric(_Section):
    """A metric of the progress lines, by the name that it has there."""

    name: str
    unit: str = ""
    direction: Literal["minimize", "maximize"] = "maximize"

    def metric(self) -> Metric:
        """Return it as a metric."""
        return Metric(self.name, self.unit, self.direction)


class TrainingOptions(_Section):
    """The `[options]` of a study of a training script.

    `argv` and the values of `environment` are templates as those of a command. `metric` is optimised, `metrics` are
    recorded beside it; `progress` names the form of the progress lines (see docs/training.md). With `target` the time
    until the metric reaches it is optimised; with `budget_s` a run is stopped after so many seconds, and what it has
    reached counts. Each run gets `cores` (a number, the name of a parameter or an expression) and `gpus` of its own.
    """

    argv: list[str] = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)
    metric: ProgressMetric
    metrics: list[ProgressMetric] = Field(default_factory=list)
    progress: ReaderKind = "auto"
    target: float | None = None
    budget_s: float | None = Field(default=None, gt=0)
    cores: Count = 1
    gpus: int = Field(default=0, ge=0)


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Check the options; the space of a training script is its study file's.

    Raises:
        PlanError: the options have errors: all of them, each with its path.
    """
    del machine, run_job, folder
    checked = read_options(TrainingOptions, options, "training")
    templates = [
        *((f"options.argv.{i}", text) for i, text in enumerate(checked.argv)),
        *((f"options.environment.{name}", text) for name, text in checked.environment.items()),
    ]
    errors = template_errors(templates)
    program = shutil.which(checked.argv[0])
    if program is None:
        errors.append(Problem(f"program {checked.argv[0]!r} is not there; give its full path", "options.argv.0"))
    if errors or program is None:
        raise PlanError(errors)
    # Each run has a folder of its own, from where a relative path leads nowhere.
    argv = [
        str(Path(program).absolute()),
        *(str(Path(w).absolute()) if Path(w).is_file() else w for w in checked.argv[1:]),
    ]
    mentioned = [mention for place, text in templates for mention in mentioned_in(text, place)]
    return Plan(
        objective=TrainingObjective(
            tuple(argv),
            checked.metric.metric(),
            tuple(metric.metric() for metric in checked.metrics),
            checked.environment,
            checked.progress,
            checked.cores,
            checked.gpus,
            checked.target,
            checked.budget_s,
        ),
        parameters=(),
        constraints=(),
        facts={"gpus": checked.gpus},
        mentioned=(*mentioned, *counts(cores=checked.cores)),
        identity=_identity(checked, argv),
        works_in_steps=checked.target is None and checked.budget_s is None,
    )


def _identity(options: TrainingOptions, argv: list[str]) -> dict[str, str]:
    # The interpreter and its script; other files may be data, or what a run writes.
    program = [argv[0], *[word for word in argv[1:] if Path(word).is_file()][:1]]
    return {
        "command": " ".join(options.argv),
        "program": ", ".join(f"{Path(word).name} sha256:{file_digest(Path(word))}" for word in program),
        "metric": options.metric.name,
        "until": f"target {options.target}, budget {options.budget_s} s",
        **expressions(cores=options.cores),
    }
