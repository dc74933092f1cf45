"""Run the default configuration of a study once, and read its metrics, answer and progress."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.execution.run_folder import output_in
from autotune.execution.task import check_target, run_job
from autotune.formatting import quantity
from autotune.held_folders import temporary_folder
from autotune.machines.this_machine import Machine
from autotune.studyfile import StudyFile
from launchers import EndReason, Launcher, LaunchError, Usage
from launchers.sequence import last_folder
from objectives.base import (
    STEPS_VARIABLE,
    Context,
    InvalidResult,
    Measurement,
    Metric,
    Output,
    Plan,
    Reading,
    Readings,
    RunFailure,
    no_progress,
)
from objectives.system_failures import without_start_command
from spaces import Configuration

_TAIL_LINES = 10
_TAIL_CHARACTERS = 200
_MISSED = re.compile(r": (?:(?:command )?not found|No such file or directory|cannot open shared object file\b.*)\s*$")


@dataclass(frozen=True)
class TrialRun:
    """A run of the default configuration.

    Attributes:
        steps: The number of steps that the run reported.
        first_step: The first reported step.
        last_step: The last reported step.
        asked_steps: The step after which the program was asked to stop, if any.
        failure: Why the run is invalid; None if it is valid.
        tail: The end of the output of an invalid run.
        complaint: A line of standard error by which a shell or a loader misses a program or a file.
    """

    usage: Usage
    exit_code: int | None
    metrics: tuple[Reading, ...] = ()
    answer: Reading | None = None
    steps: int = 0
    first_step: int | None = None
    last_step: int | None = None
    asked_steps: int | None = None
    failure: str | None = None
    tail: tuple[str, ...] = ()
    complaint: str | None = None

    @property
    def steps_doubt(self) -> str | None:
        """The disagreement between the steps asked for and those made; None if they agree or none were asked for."""
        asked, last = self.asked_steps, self.last_step
        if asked is None or last is None or last == asked:
            return None
        if last > asked:
            return (
                f"the program did not stop after step {asked} as asked: pass it {{steps}}, or let it read "
                f"{STEPS_VARIABLE}; otherwise each training is stopped when it reports the next step"
            )
        if self.first_step == 0:
            return f"the program numbers its steps from 0 to {last}, but steps count from 1: set first_step = 0"
        return (
            f"the program was asked to stop after step {asked} and ended after step {last}: "
            "a training that ends early counts as complete"
        )


def run_default(
    plan: Plan,
    default: Configuration,
    machine: Machine,
    launcher: Launcher,
    study: StudyFile,
) -> TrialRun:
    """Run the default configuration once, in a folder that is removed afterwards.

    A program that works in steps is asked to stop after `min_steps`, and is stopped if it continues.
    """
    objective = plan.objective
    limit_s, steps = study.budget.run_time_limit_s, study.stopping.min_steps if study.stopping else None
    with temporary_folder("check") as folder:
        job = objective.job(default, Context(folder, machine.cpus, limit_s, steps))
        job = replace(job, resources=replace(job.resources, cpus=machine.cpus[: max(1, job.resources.cores)]))
        progress = objective.progress_reader()
        seen: list[int] = []

        def follow(lines: Sequence[str]) -> bool:
            for line in lines:
                if (sign := progress(line)) is not None:
                    seen.append(sign.step)
                if steps is not None and seen[-1:] > [steps]:
                    return True
            return False

        try:
            output = run_job(job, launcher, None if progress is no_progress else follow)
        except LaunchError as error:
            return TrialRun(Usage(), None, failure=str(error))
        if output.status.reason is EndReason.CANCELLED and steps is not None and seen[-1:] > [steps]:
            # We stopped it after the steps asked for, so the run is valid.
            output = replace(output, status=replace(output.status, reason=EndReason.EXITED, exit_code=0))
        first, last = (seen[0], seen[-1]) if seen else (None, None)
        left = output_in(last_folder(folder, [part.folder for part in job.parts]), output.status)
        read = _read(plan, output, left, is_whole=steps is None)
        return replace(read, steps=len(set(seen)), first_step=first, last_step=last, asked_steps=steps)


def _read(plan: Plan, output: Output, last: Output, *, is_whole: bool) -> TrialRun:
    """Return the readings of a run, with the tail of its last part if a study would not accept the run.

    Args:
        plan: The plan of the study.
        output: The output of the run.
        last: The output of its last part.
        is_whole: Whether it is no short training, whose metric may still be 0.
    """
    failure, metrics, answer = None, {}, None
    try:
        measurement = plan.objective.measure(output)
        metrics, answer = dict(measurement.metrics), measurement.answer
        if is_whole:
            check_target(measurement, plan.objective.metrics[0])
        _check_times(plan.objective.metrics, measurement, output.status.usage)
    except RunFailure as error:
        failure = f"{error.kind.value}: {error}"
    # `measure` fails at the first unreadable figure; a person wants to see the others too.
    seen = Readings() if plan.read_figures is None else plan.read_figures(output)
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
        tail=() if failure is None else _tail(last),
        complaint=next(
            (line.strip()[:_TAIL_CHARACTERS] for line in last.stderr.splitlines() if _MISSED.search(line)), None
        ),
    )


def _check_times(metrics: Sequence[Metric], measurement: Measurement, usage: Usage) -> None:
    """Raise if a metric that is a time of the run is longer than the run."""
    for metric in metrics:
        value = measurement.metrics.get(metric.name)
        if value is not None and metric.exceeds_run(value, usage.elapsed_s):
            msg = (
                f"{metric.name} is {quantity(value, metric)}, but the whole run took {usage.elapsed_s:.3g} s, so it is "
                "not the run's time but perhaps a sum over ranks or threads: read another line, or leave out "
                "kind = 'time'"
            )
            raise InvalidResult(msg, code="longer-than-run")


def _tail(output: Output) -> tuple[str, ...]:
    ends = (("stdout", output.stdout), ("stderr", output.stderr))
    return tuple(
        f"{name}: {line[:_TAIL_CHARACTERS]}"
        for name, text in ends
        for line in without_start_command(text).splitlines()[-_TAIL_LINES:]
    )
