"""Running one trial: a job in, an outcome out. This is what a Ray worker does."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotune.outcome import Outcome
from launchers import STDERR, STDOUT, Job, Launcher, LaunchError, MpiStart, Resources
from launchers.mpi import MpiFlavour, flavour_record
from launchers.run import run
from objectives.base import Answer, FailureKind, InvalidResult, Measurement, Objective, Output, RunFailure

# Inputs and small outputs of a run are kept for the person who asks what happened; a program's scratch data is not.
_KEPT_BYTES = 4 * 2**20
_OUTPUT_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Task:
    """One run to be made for a trial. `reference` is the baseline's answer, None while there is none."""

    number: int
    job: Job
    objective: Objective
    reference: Answer | None = None
    attempt: int = 1


def run_task(task: Task, launcher: Launcher) -> Outcome:
    """Run the job and read its output. A failed run is an outcome, not an exception."""
    try:
        output = run_job(task.job, launcher)
    except LaunchError as error:
        # Deterministic, unlike a node that dies: the same job would be refused again.
        return Outcome(
            failure=FailureKind.APPLICATION_ERROR, code="not-started", message=str(error), attempts=task.attempt
        )
    usage = output.status.usage
    try:
        measurement = task.objective.measure(output)
        check_answer(measurement, task.reference)
    except RunFailure as failure:
        return Outcome(
            failure=failure.kind, code=failure.code, message=str(failure), usage=usage, attempts=task.attempt
        )
    finally:
        clean(task.job.folder)
    return Outcome(
        metrics=dict(measurement.metrics),
        answer=measurement.answer,
        details=dict(measurement.details),
        usage=usage,
        attempts=task.attempt,
    )


def run_job(job: Job, launcher: Launcher) -> Output:
    """Run a job to its end and collect what it left.

    Raises:
        LaunchError: it could not be started.
    """
    status = run(launcher, job)
    return Output(
        stdout=_text(job.folder / STDOUT), stderr=_text(job.folder / STDERR), status=status, folder=job.folder
    )


def check_answer(measurement: Measurement, reference: Answer | None) -> None:
    """Compare the run's answer with the baseline's.

    Raises:
        InvalidResult: it is another one.
    """
    answer = measurement.answer
    if answer is None or reference is None:
        return
    difference = abs(answer.value - reference.value)
    if not difference <= reference.tolerance:
        msg = (
            f"{answer.name} is {answer.value:.10g} {answer.unit}, the reference run's is {reference.value:.10g}: "
            f"they differ by {difference:.2g}, more than {reference.tolerance:.2g}"
        )
        raise InvalidResult(msg, code="wrong-answer")


def clean(folder: Path) -> None:
    """Remove a finished run's scratch data; keep its output and its small files."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name not in {STDOUT, STDERR} and entry.lstat().st_size > _KEPT_BYTES:
            entry.unlink(missing_ok=True)


def describe_job(job: Job, flavour: MpiFlavour | None = None) -> dict[str, Any]:
    """Return what is needed to run the job again, JSON-able: command, environment, input files, start of the ranks."""
    files = {
        entry.name: entry.read_text(encoding="utf-8", errors="replace")
        for entry in sorted(job.folder.iterdir())
        if entry.is_file() and entry.stat().st_size <= 2**16
    }
    return {
        "argv": list(job.argv),
        "environment": dict(job.environment),
        "mpi": asdict(job.mpi) if job.mpi else None,
        "flavour": flavour_record(flavour) if job.mpi and flavour else None,
        "resources": asdict(job.resources),
        "folder": os.fspath(job.folder),
        "files": files,
    }


def job_from_description(stored: Mapping[str, Any]) -> Job:
    """Read what `describe_job` wrote, without the files."""
    mpi = stored["mpi"]
    return Job(
        argv=tuple(stored["argv"]),
        folder=Path(stored["folder"]),
        environment=dict(stored["environment"]),
        mpi=MpiStart(**{**mpi, "options": tuple(mpi["options"])}) if mpi else None,
        resources=Resources(**{**stored["resources"], "cpus": tuple(stored["resources"]["cpus"])}),
    )


def _text(path: Path) -> str:
    """Read a file as text, its end if it is very large: the figures of a run stand there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _OUTPUT_BYTES))
            return file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""
