"""The objective of a replay: its job is a configuration, its output what a recorded run would have printed.

A run prints one line of JSON at its end: `{"step": 1, "time": 0.0039}`, or how it failed.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from launchers import Job, Resources
from objectives.base import (
    ApplicationError,
    Context,
    FailureKind,
    InvalidResult,
    Measurement,
    Metric,
    OutOfMemory,
    Output,
    Progress,
    ProgressReader,
    RecordedRun,
    RunFailure,
    TimedOut,
)
from objectives.ending import check_ending
from objectives.json_line import json_object
from objectives.replay.table import RecordedTable, Recording, TableRun
from spaces import Configuration

PROGRAM = "replay"
"""The first word of a replay's command, which is never run."""

NOT_RECORDED = "not-recorded"
"""The code of a run of a configuration that is not in the table."""

_FAILED: Mapping[FailureKind, type[RunFailure]] = {
    FailureKind.INVALID_RESULT: InvalidResult,
    FailureKind.OUT_OF_MEMORY: OutOfMemory,
    FailureKind.TIMED_OUT: TimedOut,
}


@dataclass(frozen=True)
class ReplayObjective:
    """Replays the recorded runs of a table."""

    table: RecordedTable

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of the table, the optimised one first."""
        return (self.table.metric, *self.table.others)

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return a job with the configuration, and with the cores that the recorded runs held."""
        recording = self.table.recording(configuration)
        cores = max(1, recording.cores if recording else 1, len(context.cpus))
        return Job(
            argv=(PROGRAM, json.dumps(dict(configuration))),
            folder=context.folder,
            resources=Resources(cores=cores, cpus=context.cpus),
            time_limit_s=context.time_limit_s,
        )

    def draw(self, configuration: Configuration, rng: np.random.Generator, worker: str = "") -> RecordedRun:
        """Return one of the recorded runs of a configuration, or of those on `worker`, with equal probability.

        Of a run that was stopped because it had lost, only a bound is known. It is replaced by one of the
        configuration's measured runs that are not better than the bound. If all of those are better, it gets the bound
        as its value, the best that it can have been. Without measured runs it stays a bound.
        """
        recording = self.table.recording(configuration)
        if recording is None:
            return self._output_run(0.0, {"failure": "", "code": NOT_RECORDED, "message": "not recorded in the table"})
        runs = [run for run in recording.runs if worker in {"", run.worker}]
        if not runs:
            return self._output_run(0.0, {"failure": "", "code": NOT_RECORDED, "message": f"not recorded on {worker}"})
        run = runs[int(rng.integers(len(runs)))]
        recorded = self._to_recorded_run(run, recording, rng)
        return replace(recorded, worker=run.worker)

    def _to_recorded_run(self, run: TableRun, recording: Recording, rng: np.random.Generator) -> RecordedRun:
        if run.bound is not None and recording.values:
            run = self._complete(run, recording.runs, rng)
        setup_s, elapsed_s = recording.setup_s, recording.setup_s + run.elapsed_s
        if run.bound is not None:
            return RecordedRun(elapsed_s, bound=run.bound, setup_s=setup_s)
        if run.failure is not None:
            printed = {"failure": run.failure.value, "code": run.code, "message": run.message}
            return self._output_run(elapsed_s, printed, setup_s)
        return self._output_run(elapsed_s, {"step": 1, **run.others, self.table.metric.name: run.value}, setup_s)

    def progress_reader(self) -> ProgressReader:
        """Return a reader of a line's step."""

        def read(line: str) -> Progress | None:
            step = json_object(line).get("step")
            return Progress(step) if isinstance(step, int) and not isinstance(step, bool) else None

        return read

    def measure(self, output: Output) -> Measurement:
        """Read what a recorded run would have printed.

        Raises:
            RunFailure: It failed when it was recorded, or is not in the table.
        """
        check_ending(output)
        name = self.table.metric.name
        for line in reversed(output.stdout.splitlines()):
            printed = json_object(line)
            if "failure" in printed:
                raise _failure(printed)
            values = {metric.name: _number(printed.get(metric.name)) for metric in self.metrics}
            if values[name] is not None:
                return Measurement({metric: value for metric, value in values.items() if value is not None})
        msg = f"no {name} in what was recorded"
        raise InvalidResult(msg, code="no-metric")

    def _complete(self, capped: TableRun, runs: tuple[TableRun, ...], rng: np.random.Generator) -> TableRun:
        cost, bound = self.table.metric.cost, capped.bound
        assert bound is not None
        worse = [run for run in runs if run.value is not None and cost(run.value) >= cost(bound)]
        if worse:
            return worse[int(rng.integers(len(worse)))]
        return replace(capped, bound=None, value=bound)

    def _output_run(self, elapsed_s: float, printed: dict[str, Any], setup_s: float = 0.0) -> RecordedRun:
        return RecordedRun(elapsed_s, ((elapsed_s, json.dumps(printed)),), setup_s=setup_s)


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _failure(printed: dict[str, Any]) -> RunFailure:
    kinds = {kind.value: made for kind, made in _FAILED.items()}
    made = kinds.get(str(printed["failure"]), ApplicationError)
    return made(
        str(printed.get("message") or "failed when it was recorded"), code=str(printed.get("code") or "recorded")
    )
