"""Runs that another program makes: a client asks for a configuration and reports its result."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from launchers import Job, Resources
from objectives.base import (
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
from objectives.json_line import json_object
from objectives.options import read_options
from spaces import Configuration
from spaces.parameters.problem import Problem


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MetricOptions(_Section):
    """A metric that is reported for each run. For `direction` and `kind` see `objectives.base.Metric`."""

    name: str = Field(min_length=1)
    unit: str = ""
    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"


class ExternalOptions(_Section):
    """The `[options]` of a study whose runs another program makes.

    Args:
        metrics: The reported metrics; the first is optimised.
        identity: The properties that make measurements comparable, such as the program's version and input. A study
            holds measurements of one identity.
        facts: Numbers and words about the problem, for constraints and the performance model.
    """

    metrics: list[MetricOptions] = Field(min_length=1)
    identity: dict[str, str] = Field(default_factory=dict)
    facts: dict[str, int | float | str | bool] = Field(default_factory=dict)


@dataclass(frozen=True)
class ExternalObjective:
    """Runs nothing: its job shows the configuration to the user, its output is a line of JSON with the metrics."""

    options: ExternalOptions

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the study file."""
        return tuple(Metric(m.name, m.unit, m.direction, m.kind) for m in self.options.metrics)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return a placeholder for the run that the other program makes."""
        return Job(
            argv=("external", json.dumps(dict(configuration))),
            folder=context.folder,
            resources=Resources(cpus=context.cpus),
            time_limit_s=context.time_limit_s,
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of lines of JSON with a `step`."""

        def read(line: str) -> Progress | None:
            step = json_object(line).get("step")
            return Progress(step) if isinstance(step, int) and not isinstance(step, bool) else None

        return read

    def measure(self, output: Output) -> Measurement:
        """Read the last line of JSON that holds a metric."""
        lines = [json_object(line) for line in output.stdout.splitlines()]
        names = {metric.name for metric in self.metrics}
        found = next((line for line in reversed(lines) if names & line.keys()), None)
        if found is None:
            msg = f"no line of JSON has {self.metrics[0].name}"
            raise InvalidResult(msg, code="no-metric")
        return self.measurement_of({name: value for name, value in found.items() if name in names})

    def measurement_of(self, reported: Mapping[str, Any]) -> Measurement:
        """Check reported values, by the names of their metrics.

        Raises:
            InvalidResult: The first metric is missing or not positive, a metric is unknown, or a value is not a finite
                number.
        """
        known = [metric.name for metric in self.metrics]
        for name, value in reported.items():
            if name not in known:
                msg = f"no metric is called {name!r}; this study has {', '.join(known)}"
                raise InvalidResult(msg, code="unknown-metric")
            if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
                msg = f"{name} is {value!r}: a metric is a finite number"
                raise InvalidResult(msg, code="not-finite")
        target = self.metrics[0]
        if target.name not in reported:
            msg = f"{target.name} is missing: it is what this study optimises"
            raise InvalidResult(msg, code="no-metric")
        self.check_target(reported[target.name])
        return Measurement({name: float(reported[name]) for name in known if name in reported})

    def check_target(self, value: float) -> None:
        """Check a value of the first metric, or a bound of it.

        Raises:
            InvalidResult: It is not positive, so it cannot be compared by ratio.
        """
        if (msg := self.metrics[0].why_not_comparable(value)) is not None:
            raise InvalidResult(msg, code="not-positive")


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Check the options; the study file defines the space.

    Raises:
        PlanError: The options have errors; all are reported, each with its path.
    """
    del machine, run_job, folder
    checked = read_options(ExternalOptions, options, "a study whose runs another program makes")
    names = [metric.name for metric in checked.metrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        msg = f"two metrics are called {', '.join(twice)}"
        raise PlanError(Problem(msg, "options.metrics"))
    return Plan(
        objective=ExternalObjective(checked),
        parameters=(),
        constraints=(),
        facts=checked.facts,
        identity=checked.identity,
    )


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False
