"""The first run of a study: its default configuration, and what was read from what it printed and wrote."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.execution.run_folder import output_in
from autotune.execution.task import run_job
from autotune.held_folders import temporary_folder
from autotune.machines.this_machine import Machine
from autotune.studyfile import StudyFile
from launchers import EndReason, Launcher, LaunchError, Usage
from launchers.sequence import last_folder
from objectives.base import STEPS_VARIABLE, Context, Output, Plan, Reading, Readings, RunFailure
from spaces import Configuration

_TAIL_LINES = 10
_TAIL_CHARACTERS = 200


@dataclass(frozen=True)
class TrialRun:
    """One run. `failure` is the reason why it is invalid, or None; `tail` is the end of an invalid run's output.

    `steps` counts the signs of progress; `first_step` and `last_step` are the first and the last step that were
    reported, `asked_steps` the one after which the program was asked to stop, if it was.
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

    @property
    def steps_doubt(self) -> str | None:
        """What is wrong with the steps that the program made; None if nothing is, or it was not asked for any."""
        asked, last = self.asked_steps, self.last_step
        if asked is None or last is None or last == asked:
            return None
        if last > asked:
            return (
                f"asked to stop after step {asked}, the program went on: give it {{steps}}, or let it read "
                f"{STEPS_VARIABLE}; each training will be stopped when it tells the next step"
            )
        if self.first_step == 0:
            return f"the last step is called {last}, the first 0: steps count from 1, and first_step = 0 says otherwise"
        return f"asked to stop after step {asked}, the program ended after step {last}: such a training counts as over"


def run_default(
    plan: Plan,
    default: Configuration,
    machine: Machine,
    launcher: Launcher,
    study: StudyFile,
) -> TrialRun:
    """Run the default configuration once, in a folder that is removed afterwards.

    A program that works in steps is asked to stop where it is judged first, and is stopped when it goes on.
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
            output = run_job(job, launcher, follow)
        except LaunchError as error:
            return TrialRun(Usage(), None, failure=str(error))
        if output.status.reason is EndReason.CANCELLED and steps is not None and seen[-1:] > [steps]:
            # It was stopped here, and what it did until then counts.
            output = replace(output, status=replace(output.status, reason=EndReason.EXITED, exit_code=0))
        first, last = (seen[0], seen[-1]) if seen else (None, None)
        left = output_in(last_folder(folder, [part.folder for part in job.parts]), output.status)
        return replace(_read(plan, output, left), steps=len(seen), first_step=first, last_step=last, asked_steps=steps)


def _read(plan: Plan, output: Output, last: Output) -> TrialRun:
    """Read a run; `last` is what that part of it left which ran last."""
    failure, metrics, answer = None, {}, None
    try:
        measurement = plan.objective.measure(output)
    except RunFailure as error:
        failure = f"{error.kind.value}: {error}"
    else:
        metrics, answer = dict(measurement.metrics), measurement.answer
    # A figure that cannot be read hides the others from `measure`, and a person wants to see them.
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
    )


def _tail(output: Output) -> tuple[str, ...]:
    ends = (("stdout", output.stdout), ("stderr", output.stderr))
    return tuple(
        f"{name}: {line[:_TAIL_CHARACTERS]}"
        for name, text in ends
        for line in text.rstrip().splitlines()[-_TAIL_LINES:]
    )
