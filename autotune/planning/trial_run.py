"""The first run of a study: its default configuration, and what was read from what it printed and wrote."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.execution.task import run_job
from autotune.machines.this_machine import Machine
from launchers import Launcher, LaunchError, Usage
from objectives.base import Context, Objective, Output, RunFailure
from objectives.command import CommandObjective
from objectives.figure import Figure
from spaces import Configuration

_TAIL_LINES = 10
_TAIL_CHARACTERS = 200


@dataclass(frozen=True)
class NumberRead:
    """A number that was looked for: its value, or why it is not there."""

    name: str
    unit: str
    value: float | None
    why: str = ""


@dataclass(frozen=True)
class TrialRun:
    """One run: `failure` says why it is no good, None if it is; `tail` is the end of what it printed, if it is not.

    `steps` counts the signs of progress, `last_step` is the last one.
    """

    usage: Usage
    exit_code: int | None
    metrics: tuple[NumberRead, ...] = ()
    answer: NumberRead | None = None
    steps: int = 0
    last_step: int | None = None
    failure: str | None = None
    tail: tuple[str, ...] = ()


def trial_run(
    objective: Objective, default: Configuration, machine: Machine, launcher: Launcher, limit_s: float | None
) -> TrialRun:
    """Run the default configuration once, in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="autotune-check-") as scratch:
        folder = Path(scratch)
        job = objective.job(default, Context(folder, machine.cpus, limit_s))
        job = replace(job, resources=replace(job.resources, cpus=machine.cpus[: max(1, job.resources.cores)]))
        progress = objective.progress_reader()
        seen: list[int] = []

        def follow(line: str) -> bool:
            found = progress(line)
            if found is not None:
                seen.append(found.step)
            return False

        try:
            output = run_job(job, launcher, follow)
        except LaunchError as error:
            return TrialRun(Usage(), None, failure=str(error))
        return replace(_read(objective, output), steps=len(seen), last_step=seen[-1] if seen else None)


def _read(objective: Objective, output: Output) -> TrialRun:
    failure, metrics, answer = None, {}, None
    try:
        measurement = objective.measure(output)
    except RunFailure as error:
        failure = f"{error.kind.value}: {error}"
    else:
        metrics, answer = dict(measurement.metrics), measurement.answer
    # A figure that cannot be read hides the others from `measure`, and a person wants to see them.
    looked_for = _figures(objective)
    readings = tuple(
        _reading(looked_for[metric.name], metric.unit, output)
        if metric.name in looked_for
        else NumberRead(metric.name, metric.unit, metrics.get(metric.name))
        for metric in objective.metrics
    )
    checked = None if answer is None else NumberRead(answer.name, answer.unit, answer.value)
    if checked is None and isinstance(objective, CommandObjective) and objective.options.answer is not None:
        checked = _reading(objective.options.answer.figure, objective.options.answer.unit, output)
    return TrialRun(
        output.status.usage,
        output.status.exit_code,
        readings,
        checked,
        failure=failure,
        tail=() if failure is None else _tail(output),
    )


def _figures(objective: Objective) -> dict[str, Figure]:
    if not isinstance(objective, CommandObjective):
        return {}
    return {metric.name: metric.figure for metric in objective.options.metrics}


def _reading(figure: Figure, unit: str, output: Output) -> NumberRead:
    try:
        return NumberRead(figure.name, unit, figure.value(output))
    except RunFailure as error:
        return NumberRead(figure.name, unit, None, str(error))


def _tail(output: Output) -> tuple[str, ...]:
    ends = (("stdout", output.stdout), ("stderr", output.stderr))
    return tuple(
        f"{name}: {line[:_TAIL_CHARACTERS]}"
        for name, text in ends
        for line in text.rstrip().splitlines()[-_TAIL_LINES:]
    )
