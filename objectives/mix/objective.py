"""Several inputs as one objective: a run runs all of them, and their weighted geometric mean is optimised.

The ratio of two configurations' means is the weighted geometric mean of their ratios on the inputs, whatever the
inputs' own values are. So the mean of speed-ups over the default needs no value of the default (Fleming & Wallace, How
not to lie with statistics: the correct way to summarize benchmark results, 1986).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import exp, fsum, log
from pathlib import Path
from typing import TypeVar

from launchers import STDERR, STDOUT, EndReason, Job, JobState, JobStatus, Resources, Usage
from launchers.status import read_status
from objectives.base import (
    Answer,
    Context,
    InfrastructureError,
    InvalidResult,
    Measurement,
    Metric,
    Objective,
    Output,
    Progress,
    ProgressReader,
    RunFailure,
)
from objectives.ending import check_ending
from objectives.figure import read_text
from objectives.json_line import json_object
from spaces import Configuration

MIX = "mix"
"""The metric that is optimised."""

INPUTS = "inputs"
"""The detail that holds the details of each input, by its name."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class MixInput:
    """One input of a mix.

    Args:
        name: Its name.
        share: Its share of the mix; all shares add up to 1.
        objective: Its own objective.
        not_its_own: Parameters that only other inputs have; it is run without them.
    """

    name: str
    share: float
    objective: Objective
    not_its_own: frozenset[str] = frozenset()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Its metrics, with the input's name in theirs; the first is its value in the mix."""
        return tuple(replace(metric, name=name_for_input(metric.name, self.name)) for metric in self.objective.metrics)

    def own_configuration(self, configuration: Configuration) -> Configuration:
        """Return the part of a configuration that concerns this input."""
        return {name: value for name, value in configuration.items() if name not in self.not_its_own}


def name_for_input(name: str, input_name: str) -> str:
    """Return the name of a metric or an answer of an input."""
    return f"{name}[{input_name}]"


def geometric_mean(values: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """Return the weighted geometric mean of positive values; the order of the inputs does not change it."""
    return exp(fsum(share * log(values[name]) for name, share in shares.items()))


@dataclass(frozen=True)
class MixObjective:
    """Runs each input in its own folder, one after another; if one fails, the run fails."""

    inputs: tuple[MixInput, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The mix, then the metrics of each input."""
        targets = [one.objective.metrics[0] for one in self.inputs]
        units = {target.unit for target in targets}
        mix = Metric(MIX, units.pop() if len(units) == 1 else "", targets[0].direction)
        return (mix, *(metric for one in self.inputs for metric in one.metrics))

    @property
    def shares(self) -> dict[str, float]:
        """The share of each input."""
        return {one.name: one.share for one in self.inputs}

    def job(self, configuration: Configuration, context: Context) -> Job:
        """Return the job with one part for each input; its time limit is for all of them together."""
        parts = tuple(self._part(one, configuration, context) for one in self.inputs)
        return Job(
            argv=(),
            folder=context.folder,
            resources=Resources(
                cores=max(part.resources.cores for part in parts),
                nodes=max(part.resources.nodes for part in parts),
                gpus=max(part.resources.gpus for part in parts),
                cpus=context.cpus,
                threads_per_core=max(part.resources.threads_per_core for part in parts),
            ),
            time_limit_s=context.time_limit_s,
            parts=parts,
            software=parts[0].software,
        )

    def _part(self, one: MixInput, configuration: Configuration, context: Context) -> Job:
        folder = context.folder / one.name
        folder.mkdir()
        own = replace(context, folder=folder, time_limit_s=None)
        return replace(one.objective.job(one.own_configuration(configuration), own), name=one.name)

    def progress_reader(self) -> ProgressReader:
        """Return a reader of the lines about inputs that have ended; its metrics are those of the input."""
        by_name = {one.name: one for one in self.inputs}

        def read(line: str) -> Progress | None:
            with suppress(ValueError, TypeError, KeyError, OverflowError):
                said = json_object(line)
                one, folder = by_name[said["name"]], Path(said["folder"])
                try:
                    metrics = _rename(one, self._measure_input(one, _read_part(folder)).metrics)
                except (RunFailure, OSError):
                    metrics = {}
                return Progress(int(said["number"]), metrics)
            return None

        return read

    def measure(self, output: Output) -> Measurement:
        """Read the measurements of all inputs.

        Raises:
            RunFailure: An input gave none; the message begins with its name.
            OSError: A file that an input left cannot be read.
        """
        self._check(output)
        left = {one.name: _read_part(output.folder / one.name, output.job) for one in self.inputs}
        read = {one.name: self._measure_input(one, left[one.name]) for one in self.inputs}
        values = {one.name: read[one.name].metrics[one.objective.metrics[0].name] for one in self.inputs}
        metrics = {MIX: geometric_mean(values, self.shares)}
        for one in self.inputs:
            metrics |= _rename(one, read[one.name].metrics)
        return Measurement(
            metrics,
            _answers(read),
            {INPUTS: {one.name: _details(left[one.name], read[one.name]) for one in self.inputs}},
            self._parameters_without_effect(read),
        )

    def _check(self, output: Output) -> None:
        """Raise if the job as a whole was ended; the ends of its inputs then say nothing about the configuration."""
        status = output.status
        if status.state is JobState.ENDED and status.reason is EndReason.EXITED:
            return
        ends = (read_status(output.folder / one.name) for one in self.inputs)
        running = next(
            (one for one, end in zip(self.inputs, ends, strict=True) if end is None or end.reason != EndReason.EXITED),
            self.inputs[-1],
        )
        with _naming_input(running):
            check_ending(output)

    def _measure_input(self, one: MixInput, output: Output | None) -> Measurement:
        with _naming_input(one):
            if output is None:
                msg = "did not record how it ended"
                raise InfrastructureError(msg, code="lost")
            measurement = one.objective.measure(output)
            target = one.objective.metrics[0]
            if (why := target.why_not_comparable(measurement.metrics[target.name])) is not None:
                raise InvalidResult(why, code="not-positive")
            return measurement

    def _parameters_without_effect(self, read: Mapping[str, Measurement]) -> tuple[str, ...]:
        """Return the parameters that had no effect on any input."""
        without = [{*read[one.name].unused, *one.not_its_own} for one in self.inputs]
        return tuple(sorted(set.intersection(*without)))


@contextmanager
def _naming_input(one: MixInput) -> Iterator[None]:
    """Add the name of the input to a failure."""
    try:
        yield
    except RunFailure as failure:
        raise type(failure)(f"input {one.name}: {failure}", failure.code) from failure


def _read_part(folder: Path, job: Job | None = None) -> Output | None:
    """Return what an input left in its folder, as a part of the job; None if it is unknown how it ended."""
    status: JobStatus | None = read_status(folder)
    if status is None:
        return None
    part = next((part for part in job.parts if part.folder == folder), None) if job is not None else None
    return Output(read_text(folder / STDOUT) or "", read_text(folder / STDERR) or "", status, folder, part)


def _rename(one: MixInput, metrics: Mapping[str, float]) -> dict[str, float]:
    return {name_for_input(name, one.name): value for name, value in metrics.items()}


def _answers(read: Mapping[str, Measurement]) -> Answer | None:
    """Return the answers of the inputs as one; each is compared with the reference's on the same input."""
    parts = tuple(
        replace(measured.answer, name=name_for_input(measured.answer.name, name))
        for name, measured in read.items()
        if measured.answer is not None
    )
    return Answer("answers", float(len(parts)), 0.0, parts=parts) if parts else None


def _details(output: Output | None, measured: Measurement) -> dict[str, object]:
    used = Usage() if output is None else output.status.usage
    return {"elapsed_s": used.elapsed_s, "peak_memory_bytes": used.peak_memory_bytes, **measured.details}


def read_inputs(inputs: tuple[MixInput, ...], folder: Path, look: Callable[[MixInput, Output], _T]) -> list[_T]:
    """Return what `look` reads from the output of each input in the folder of a run, where there is one."""
    outputs = ((one, _read_part(folder / one.name)) for one in inputs)
    return [look(one, output) for one, output in outputs if output is not None]
