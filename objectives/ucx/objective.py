"""The benchmarks of UCX as objectives: a configuration becomes an environment, JSON lines a measurement."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from launchers import Job, Resources
from objectives.base import (
    Answer,
    ApplicationError,
    Context,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Progress,
    ProgressReader,
    RunFailure,
    TimedOut,
)
from objectives.ending import check_disk, check_ending
from objectives.json_line import json_object
from objectives.probe import PROGRAMS
from objectives.system_failures import last_words
from objectives.ucx.protocols import PROTOCOLS, Span, choices
from spaces import Configuration

VARIABLES = ("UCX_", "UCXPY_")
"""Prefixes of parameters that are environment variables."""

ELAPSED = Metric("elapsed_s", "s", kind="time")
MERGE_METRICS = (
    Metric("throughput_bytes_per_s", "B/s", "maximize", "rate"),
    Metric("bandwidth_bytes_per_s", "B/s", "maximize"),
    ELAPSED,
)

# Unbuffered, so that what UCX prints is not lost when a worker is killed; Python then unbuffers C's output as well.
_ENVIRONMENT = {"UCX_WARN_UNUSED_ENV_VARS": "y", "PYTHONUNBUFFERED": "1"}
_WORDS = 400  # characters of the program's output in a message
_UNUSED = re.compile(r"unused env(?:ironment)? variables?: ([^\n]*)")
_ASIDE = re.compile(r"\((?:maybe|set)\b[^)\n]*\)")  # UCX's suggestions are not the unused variables
_RULES: tuple[tuple[re.Pattern[str], type[RunFailure], str], ...] = tuple(
    (re.compile(rf"[^\n]*(?:{sign})[^\n]*"), failure, f"ucx.{code}")
    for sign, failure, code in (
        (r"Invalid value\b|Invalid parameter", ApplicationError, "invalid-value"),
        (r"wrong table:", InvalidResult, "wrong-answer"),
        (r"gave up:", TimedOut, "hang"),
        (r"no usable transports|No such device|is unreachable|no \S+ transport", ApplicationError, "no-transport"),
        (r"UCXX? +(?:ERROR|FATAL)|\bUCXX\w+Error", ApplicationError, "error"),
    )
)

_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Merged(_Section):
    throughput_bytes_per_s: _Positive
    bandwidth_bytes_per_s: _Positive
    rows: int
    checksum: int = Field(ge=0, lt=2**53)
    iterations: dict[str, list[_Positive]]


class _Measured(_Section):
    value: _Positive
    medians: dict[int, _Positive]
    iterations: dict[int, list[_Positive]]


def perftest_metrics(test: str) -> tuple[Metric, ...]:
    """Return the metrics of a test of ucx_perftest; the geometric mean over the sizes is optimised."""
    if test.endswith("_bw"):
        return (Metric("bandwidth_bytes_per_s", "B/s", "maximize"), ELAPSED)
    return (Metric("latency_s", "s"), ELAPSED)


@dataclass(frozen=True)
class UcxObjective:
    """Runs one of our two benchmarks with the variables of a configuration.

    Args:
        argv: Its whole command line.
        processes: The processes that take part in the exchange.
        metrics: Its metrics.
        environment: Variables that make UCX print more.
        spans: The message sizes in bytes.
    """

    argv: tuple[str, ...]
    processes: int
    metrics: tuple[Metric, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the run of a configuration."""
        chosen = {name: str(value) for name, value in configuration.items() if name.startswith(VARIABLES)}
        return Job(
            argv=self.argv,
            folder=context.folder,
            environment={**_ENVIRONMENT, **self.environment, **chosen},
            resources=Resources(cores=self.processes, cpus=context.cpus),
            time_limit_s=context.time_limit_s,
        )

    def progress_reader(self) -> ProgressReader:
        """Return a reader of iterations."""

        def read(line: str) -> Progress | None:
            found = json_object(line)
            step = found.pop("step", None)
            if type(step) is not int:
                return None
            return Progress(step, {name: value for name, value in found.items() if isinstance(value, float)})

        return read

    def measure(self, output: Output) -> Measurement:
        """Check that UCX accepted all values and the run ended normally; read its figures.

        Raises:
            RunFailure: It did not; the message uses the words of UCX or of our program.
        """
        check_ending(output)
        text = f"{output.stdout}\n{output.stderr}"
        failure = _failure(output, text)
        if failure is not None:
            raise failure
        try:
            return self._read(output, text)
        except InvalidResult:
            check_disk(output)
            raise

    def _read(self, output: Output, text: str) -> Measurement:
        results = [found["result"] for line in output.stdout.splitlines() if "result" in (found := json_object(line))]
        if not results:
            msg = f"the run printed no result: {last_words(text) or 'nothing at all'}"
            raise InvalidResult(msg, code="ucx.no-result")
        try:
            figures, answer = self._figures(results[-1])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            msg = f"the result cannot be read: {first['msg']} at {'.'.join(map(str, first['loc'])) or 'its start'}"
            raise InvalidResult(msg, code="ucx.bad-result") from None
        return Measurement(
            metrics={**figures, ELAPSED.name: output.status.usage.elapsed_s},
            answer=answer,
            details={**results[-1], PROTOCOLS: choices(text, self.spans)},
            unused=unused_variables(text),
        )

    def _figures(self, result: object) -> tuple[dict[str, float], Answer | None]:
        if self.metrics == MERGE_METRICS:
            merged = _Merged.model_validate(result)
            figures = {metric.name: getattr(merged, metric.name) for metric in MERGE_METRICS[:2]}
            return figures, Answer("checksum of the merged table", float(merged.checksum), 0.5)
        return {self.metrics[0].name: _Measured.model_validate(result).value}, None


def unused_variables(text: str) -> tuple[str, ...]:
    """Return the variables that UCX reports as unused, in the formats of 1.13 and of 1.21."""
    names = {name for match in _UNUSED.findall(text) for name in re.findall(r"UCX_\w+", _ASIDE.sub("", match))}
    return tuple(sorted(names))


def program(name: str) -> str:
    """Return the path of one of our programs."""
    return str(PROGRAMS / "ucx" / f"{name}.py")


def _failure(output: Output, text: str) -> RunFailure | None:
    # If UCX rejected a value, the run does not measure it, however it ended.
    rules = _RULES if output.status.exit_code != 0 else _RULES[:1]
    for sign, failure, code in rules:
        if match := sign.search(text):
            return failure(match[0].strip()[:_WORDS], code)
    if output.status.exit_code != 0:
        msg = f"ended with exit code {output.status.exit_code}: {last_words(text) or 'no output'}"
        return ApplicationError(msg, "ucx.exit-code")
    return None
