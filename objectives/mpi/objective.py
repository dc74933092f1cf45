"""The benchmark of collective operations as an objective: a configuration becomes a job, its lines a measurement."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from launchers import Job, MpiStart, Resources
from objectives.base import (
    POINTS,
    Answer,
    ApplicationError,
    Context,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Progress,
    ProgressReader,
)
from objectives.ending import check_disk, check_ending
from objectives.json_line import json_object
from objectives.mpi.backends import NCCL
from objectives.mpi.knobs import BACKEND, BIND_TO, COLLECTIVE, PAUSE_US, RANKS, TESTS
from spaces import Configuration

LATENCY = Metric("latency_s", "s")
ELAPSED = Metric("elapsed_s", "s", kind="time")

EXPOSED = Metric("exposed_s", "s")
HIDDEN = Metric("hidden_percent", "%", "maximize")
OVERLAP_METRICS = (EXPOSED, HIDDEN, ELAPSED)
"""The metrics of nonblocking operations: the time that they add to a computation, and the share that it hides."""

_WORDS = 400  # characters of the program's output in a message
_Size = tuple[Annotated[int, Field(ge=0)], Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class _Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    collective: str
    ranks: int
    sizes: list[_Size] = Field(min_length=1)
    hidden_percent: list[tuple[int, Annotated[float, Field(ge=0, le=100)]]] = []


@dataclass(frozen=True)
class MpiObjective:
    """Runs our benchmark with the variables of a configuration.

    Args:
        program: Its path.
        sizes: The message sizes in bytes, separated by commas.
        seconds: How long a run measures, in seconds.
        cores: The cores of the machine; more ranks share them.
        variables: Returns the environment of a configuration.
        metrics: The first is measured at each size. With `OVERLAP_METRICS` the benchmark is that of nonblocking
            operations.
        torch: The command of the benchmark of torch's backends.
    """

    program: str
    sizes: str
    seconds: float
    cores: int
    variables: Callable[[Configuration], Mapping[str, str]]
    metrics: tuple[Metric, ...] = (LATENCY, ELAPSED)
    torch: tuple[str, ...] = ()

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the run of a configuration."""
        collective, ranks = str(configuration[COLLECTIVE]), int(configuration[RANKS])
        bind_to, backend = configuration.get(BIND_TO), configuration.get(BACKEND)
        what = (collective, f"{self.seconds:g}", "0" if collective == "barrier" else self.sizes)
        resources = Resources(cores=min(ranks, self.cores), cpus=context.cpus)
        if backend is not None:
            return Job(
                argv=(*self.torch, str(backend), str(ranks), *what),
                folder=context.folder,
                resources=replace(resources, gpus=ranks if backend == NCCL else 0),
                time_limit_s=context.time_limit_s,
            )
        return Job(
            argv=(
                *(self.program, *what),
                *((str(configuration.get(TESTS, 0)), str(configuration.get(PAUSE_US, -1))) if self._overlap else ()),
            ),
            folder=context.folder,
            environment=dict(self.variables(configuration)),
            mpi=MpiStart(ranks, bind_to=None if bind_to is None else str(bind_to)),
            resources=resources,
            time_limit_s=context.time_limit_s,
        )

    @property
    def _overlap(self) -> bool:
        return HIDDEN in self.metrics

    def progress_reader(self) -> ProgressReader:
        """Return a reader of the sizes that are done."""

        def read(line: str) -> Progress | None:
            found = json_object(line)
            step, value = found.get("step"), found.get(self.metrics[0].name)
            return Progress(step, {self.metrics[0].name: value}) if type(step) is int and type(value) is float else None

        return read

    def measure(self, output: Output) -> Measurement:
        """Check that the collective gave right results and the run ended normally; read its figures.

        Raises:
            RunFailure: It did not; the message uses the words of MPI or of our program.
        """
        check_ending(output)
        lines = [json_object(line) for line in output.stdout.splitlines()]
        wrong = next((found["wrong"] for found in lines if "wrong" in found), None)
        if wrong is not None:
            raise InvalidResult(f"the collective gave a wrong result: {wrong}"[:_WORDS], code="mpi.wrong-answer")
        if output.status.exit_code != 0:
            msg = f"ended with exit code {output.status.exit_code}: {_error_text(output) or 'no output'}"
            raise ApplicationError(msg, code="mpi.exit-code")
        try:
            return self._read(output, [found["result"] for found in lines if "result" in found])
        except InvalidResult:
            check_disk(output)
            raise

    def _read(self, output: Output, results: list[object]) -> Measurement:
        if not results:
            msg = f"the run printed no result: {_error_text(output) or 'nothing at all'}"
            raise InvalidResult(msg, code="mpi.no-result")
        try:
            result = _Result.model_validate(results[-1])
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            msg = f"the result cannot be read: {first['msg']} at {'.'.join(map(str, first['loc'])) or 'its start'}"
            raise InvalidResult(msg, code="mpi.bad-result") from None
        job = output.job
        if job is not None and job.mpi is not None and job.mpi.ranks != result.ranks:
            msg = (
                f"{job.mpi.ranks} ranks were started, and each found {result.ranks}: the start command is that of "
                "another MPI library than the benchmark was built with; load one MPI library only"
            )
            raise InvalidResult(msg, code="mpi.two-libraries")
        if self._overlap and [size for size, _ in result.hidden_percent] != [size for size, _ in result.sizes]:
            raise InvalidResult("the result does not give the hidden share of each size", code="mpi.bad-result")
        mean = math.exp(math.fsum(math.log(value) for _, value in result.sizes) / len(result.sizes))
        hidden = [share for _, share in result.hidden_percent]
        shares = {HIDDEN.name: math.fsum(hidden) / len(hidden)} if self._overlap else {}
        return Measurement(
            metrics={self.metrics[0].name: mean, **shares, ELAPSED.name: output.status.usage.elapsed_s},
            # The program itself has checked every number of every result.
            answer=Answer("wrong numbers", 0.0, 0.5),
            details={
                POINTS: [list(size) for size in result.sizes],
                **({HIDDEN.name: [list(size) for size in result.hidden_percent]} if self._overlap else {}),
                COLLECTIVE: result.collective,
                RANKS: result.ranks,
                "oversubscribed": result.ranks > self.cores,
            },
        )


def _error_text(output: Output) -> str:
    """Return MPI's error message without the lines of dashes around it."""
    text = f"{output.stdout}\n{output.stderr}".strip()[-10 * _WORDS :]
    lines = [line.strip() for line in text.splitlines() if line.strip(" -*") and not line.startswith("{")]
    errors = [line for line in lines if "error" in line.lower() or "MPI_ERR" in line]
    return " ".join((errors or lines)[:2])[:_WORDS]
