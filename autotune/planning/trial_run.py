"""The first run of a study: its default configuration, and what was read from what it printed and wrote."""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.execution.task import run_job
from autotune.machines.this_machine import Machine
from launchers import Launcher, LaunchError, Usage
from objectives.base import Context, Output, Plan, Reading, Readings, RunFailure
from spaces import Configuration

_TAIL_LINES = 10
_TAIL_CHARACTERS = 200


@dataclass(frozen=True)
class TrialRun:
    """One run. `failure` is the reason why it is invalid, or None; `tail` is the end of an invalid run's output.

    `steps` counts the signs of progress; `last_step` is the last step that was reported.
    """

    usage: Usage
    exit_code: int | None
    metrics: tuple[Reading, ...] = ()
    answer: Reading | None = None
    steps: int = 0
    last_step: int | None = None
    failure: str | None = None
    tail: tuple[str, ...] = ()


def trial_run(
    plan: Plan, default: Configuration, machine: Machine, launcher: Launcher, limit_s: float | None
) -> TrialRun:
    """Run the default configuration once, in a folder that is removed afterwards."""
    objective = plan.objective
    with tempfile.TemporaryDirectory(prefix="autotune-check-") as scratch:
        folder = Path(scratch)
        job = objective.job(default, Context(folder, machine.cpus, limit_s))
        job = replace(job, resources=replace(job.resources, cpus=machine.cpus[: max(1, job.resources.cores)]))
        progress = objective.progress_reader()
        seen: list[int] = []

        def follow(line: str) -> bool:
            sign = progress(line)
            if sign is not None:
                seen.append(sign.step)
            return False

        try:
            output = run_job(job, launcher, follow)
        except LaunchError as error:
            return TrialRun(Usage(), None, failure=str(error))
        return replace(_read(plan, output), steps=len(seen), last_step=seen[-1] if seen else None)


def _read(plan: Plan, output: Output) -> TrialRun:
    failure, metrics, answer = None, {}, None
    try:
        measurement = plan.objective.measure(output)
    except RunFailure as error:
        failure = f"{error.kind.value}: {error}"
    else:
        metrics, answer = dict(measurement.metrics), measurement.answer
    # A figure that cannot be read hides the others from `measure`, and a person wants to see them.
    seen = Readings() if plan.looks is None else plan.looks(output)
    by_name = {reading.name: reading for reading in seen.metrics}
    readings = tuple(
        by_name.get(metric.name) or Reading(metric.name, metric.unit, metrics.get(metric.name))
        for metric in plan.objective.metrics
    )
    checked = seen.answer if answer is None else Reading(answer.name, answer.unit, answer.value)
    return TrialRun(
        output.status.usage,
        output.status.exit_code,
        readings,
        checked,
        failure=failure,
        tail=() if failure is None else _tail(output),
    )


def _tail(output: Output) -> tuple[str, ...]:
    ends = (("stdout", output.stdout), ("stderr", output.stderr))
    return tuple(
        f"{name}: {line[:_TAIL_CHARACTERS]}"
        for name, text in ends
        for line in text.rstrip().splitlines()[-_TAIL_LINES:]
    )
