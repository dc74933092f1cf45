"""Running one trial: a job in, an outcome out. This is what a Ray worker does."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotune.outcome import Outcome
from launchers import STDERR, STDOUT, Job, Launcher, LaunchError, MpiStart, Resources
from launchers.mpi import CannotStartRanksError, MpiFlavour, flavour_record
from launchers.run import run
from objectives.base import Answer, FailureKind, InvalidResult, Measurement, Objective, Output, RunFailure

# Inputs and small outputs of a run are kept for the person who asks what happened; a program's scratch data is not.
_KEPT_BYTES = 4 * 2**20
_STORED_BYTES = 2**20
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
        # What the start command cannot do is the configuration's fault, a missing program the machine's.
        refused = isinstance(error.__cause__, CannotStartRanksError)
        kind = FailureKind.APPLICATION_ERROR if refused else FailureKind.INFRASTRUCTURE_ERROR
        return Outcome(failure=kind, code="not-started", message=str(error), attempts=task.attempt)
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
    """Remove a finished run's scratch data; keep its small files, and the end of its output."""
    for entry in list(folder.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.lstat().st_size > _KEPT_BYTES:
            kept = _tail(entry, _KEPT_BYTES) if entry.name in {STDOUT, STDERR} else None
            entry.unlink(missing_ok=True)
            if kept is not None:
                entry.write_bytes(kept)


def describe_job(job: Job, flavour: MpiFlavour | None = None) -> dict[str, Any]:
    """Return what is needed to run the job again, JSON-able: command, environment, input files, start of the ranks."""
    files = {
        entry.name: entry.read_text(encoding="utf-8", errors="replace")
        for entry in sorted(job.folder.iterdir())
        if entry.is_file() and entry.stat().st_size <= _STORED_BYTES
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
        return _tail(path, _OUTPUT_BYTES).decode("utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _tail(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - count))
        return file.read()
