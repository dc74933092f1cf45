"""Tasks: running a job and reading its outcome."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from autotune.execution.capping import Cap, ProgressWatch, apply_cap, was_capped
from autotune.execution.run_folder import output_in
from autotune.execution.segments import Segment, SegmentWatch
from autotune.machines.provenance import host_state
from autotune.records.outcome import Outcome
from autotune.records.study import STOPPED
from launchers import (
    STDOUT,
    EndReason,
    Job,
    JobState,
    JobStatus,
    Launcher,
    LaunchError,
    MpiStart,
    Place,
    Resources,
    Server,
)
from launchers.batch import RefusedError
from launchers.batch.job_ends import was_ended_by_others
from launchers.card import Card
from launchers.environment import read_umask
from launchers.mpi import CannotStartRanksError, MpiFlavour, flavour_record
from launchers.run import OnLines, run
from launchers.secret import mask_secrets, without_secrets
from launchers.software.software import flavour_for
from objectives.base import (
    REMARK,
    Answer,
    FailureKind,
    InvalidResult,
    Measurement,
    Metric,
    Objective,
    Output,
    RunFailure,
)

_STORED_BYTES = 2**20

WRONG_ANSWER = "wrong-answer"
"""The code of a run whose answer is not that of the reference run."""

PREEMPTED = "preempted"
"""The code of a run whose job was preempted by another; nothing went wrong."""

REFUSED = "refused"
"""The code of a run whose job the batch system will never accept, so it is submitted only once."""

CUT_SHORT = "cut-short"
"""The code of a run whose job was given too short a wall time by autotune; it runs again with that of the site."""

NO_PLACE = "no-place"
"""The code of a run whose job cannot have the nodes that it named; it may run elsewhere."""

REFUSED_ALL = "all-refused"
"""The code of a run whose job is refused for a setting of all jobs of the site, such as the queue."""


@dataclass(frozen=True)
class Task:
    """One run to make.

    Attributes:
        key: The coordinator's key of the run.
        job: The job to run.
        objective: Reads the output.
        reference: The baseline's answer; None before the baseline has run.
        cap: The point at which the run has lost.
        segment: The part of a training to run, for a program that works in steps.
        seed: The seed of the run.
        attempt: The number of this launch, from 1, without those that do not count as a try.
        uncounted: The number of earlier launches that did not count.
        job_id: The id of the job, if an earlier session submitted it.
        umask: Decides who can open the files of the run, also if a process on another node makes them.
    """

    key: int
    job: Job
    objective: Objective
    reference: Answer | None = None
    cap: Cap | None = None
    segment: Segment | None = None
    seed: int = 0
    attempt: int = 1
    uncounted: int = 0
    job_id: str | None = None
    umask: int = field(default_factory=read_umask)


class WatchedRun:
    """A run in flight: reads its live output, and at the end its outcome."""

    def __init__(self, task: Task, *, from_start: bool = True) -> None:
        """Start the clock of a task whose job starts now; without `from_start`, the times of lines are unknown."""
        if not from_start and task.cap is not None:
            task = replace(task, cap=replace(task.cap, pace=None))
        self.task = task
        self._from_start = from_start
        self._conditions = host_state(task.job.resources.cpus) if task.job.resources.cpus else {}
        self._fault: Exception | None = None
        self._segment_watch = SegmentWatch(task.segment) if task.segment else None
        self._watch = ProgressWatch(task.objective.progress_reader(), task.cap, on_progress=self._segment_watch)

    @property
    def on_lines(self) -> OnLines | None:
        """Reads lines of output and returns True to stop the run; None if nothing needs the lines."""
        return self if self._watch.follows else None

    def __call__(self, lines: Sequence[str]) -> bool:
        """Read lines of output; return True to stop the run."""
        try:
            return self._watch.read(lines)
        except Exception as error:  # noqa: BLE001  the outcome reports it
            self._fault = error
            return True

    def outcome(self, status: JobStatus) -> Outcome:
        """Return the outcome of the run; leave its folder unchanged, to be read again until the outcome is stored."""
        job = self.task.job
        try:
            outcome = self._read(replace(output_in(job.folder, status), job=job))
        except OSError as error:
            outcome = _unreadable(error)
        except Exception as error:  # noqa: BLE001  a fault of one objective does not end the session
            outcome = fault_outcome(self.task, error)
        return replace(
            outcome,
            timeline=self._watch.timeline if self._from_start else (),
            conditions={
                **self._conditions,
                **(status.affinity.as_dict() if status.affinity else {}),
                **status.disturbance.as_dict(),
                **status.metered,
            },
            usage=status.usage,
            attempts=self.task.attempt,
        )

    def _read(self, output: Output) -> Outcome:
        if self._fault is not None:
            raise self._fault
        # A segment that had reached its last step was stopped by a session, of which the batch system does not know.
        stopped = self._segment_watch is not None and self._segment_watch.stops
        if output.status.reason is EndReason.PREEMPTED and not stopped:
            return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code=PREEMPTED, message=output.status.message)
        if self._segment_watch is None:
            return outcome_of(self.task, output, self._watch)
        return _segment_outcome(self.task, output, self._watch, self._segment_watch)


def run_task(task: Task, launcher: Launcher) -> Outcome:
    """Run the job and read its output. A failed or a capped run is an outcome, not an exception."""
    os.umask(task.umask)
    watched = WatchedRun(task)
    try:
        status = run(launcher, apply_cap(task.job, task.cap), watched.on_lines)
    except LaunchError as error:
        return not_started(task, error)
    return watched.outcome(status)


def not_started(task: Task, error: LaunchError) -> Outcome:
    """Return the outcome of a run that could not be started."""
    # If the start command cannot do what is asked, that is the configuration's fault; a missing program is not.
    refused = isinstance(error.__cause__, CannotStartRanksError)
    kind = FailureKind.APPLICATION_ERROR if refused else FailureKind.INFRASTRUCTURE_ERROR
    code = "not-started"
    if isinstance(error, RefusedError):
        code = REFUSED_ALL if error.all_jobs else NO_PLACE if task.job.place else REFUSED
    return Outcome(failure=kind, code=code, message=str(error), attempts=task.attempt)


def lost_outcome(task: Task, message: str) -> Outcome:
    """Return the outcome of a run whose result was lost, for no fault of its configuration."""
    return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code="worker", message=message, attempts=task.attempt)


def fault_outcome(task: Task, error: BaseException) -> Outcome:
    """Return the outcome of a run that an unexpected exception ended."""
    return lost_outcome(task, f"a fault in autotune or in an objective: {error!r}")


def outcome_of(task: Task, output: Output, watch: ProgressWatch) -> Outcome:
    """Return the outcome of a run: capped, failed or measured."""
    if task.cap is not None and was_capped(task.job, task.cap, output.status, watch):
        return _outcome_at_cap(task.cap, output, watch)
    if _was_cut_short(task, output.status):
        msg = "was ended at the wall time of its job, which earlier runs had suggested"
        return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code=CUT_SHORT, message=msg)
    return read_outcome(task.objective, output, task.reference, task.segment)


def _was_cut_short(task: Task, status: JobStatus) -> bool:
    """Whether a job was ended at a wall time that was only expected to suffice, and not at a limit of its run."""
    enough_s, limit_s = task.job.walltime_s, apply_cap(task.job, task.cap).time_limit_s
    if enough_s is None or enough_s == inf or status.state is not JobState.ENDED:
        return False
    elapsed_s = status.usage.elapsed_s
    if status.reason is EndReason.TIMED_OUT:
        return limit_s is None or elapsed_s < limit_s
    # Some batch systems end a job at its wall time and do not say why.
    return was_ended_by_others(status) and elapsed_s >= enough_s


def read_outcome(objective: Objective, output: Output, reference: Answer | None, segment: Segment | None) -> Outcome:
    """Return the outcome of a run that was not capped; its answer must agree with the reference."""
    try:
        measurement = objective.measure(output)
        if segment is None or segment.steps >= segment.of:
            check_target(measurement, objective.metrics[0])
        check_answer(measurement, reference)
    except RunFailure as failure:
        return Outcome(failure=failure.kind, code=failure.code, message=str(failure))
    except OSError as error:
        return _unreadable(error)
    return Outcome(
        metrics=dict(measurement.metrics),
        answer=measurement.answer,
        details=dict(measurement.details),
        unused=measurement.unused,
    )


def _unreadable(error: OSError) -> Outcome:
    """Return the outcome of a run whose files cannot be read: an infrastructure error."""
    where = f"{error.filename}: " if error.filename else ""
    msg = f"what it left cannot be read: {where}{error.strerror or error}"
    return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code="unreadable", message=msg)


def _segment_outcome(task: Task, output: Output, watch: ProgressWatch, ahead: SegmentWatch) -> Outcome:
    """Return the outcome of a segment; a run that was stopped at a step counts as one that ended by itself."""
    if not (ahead.stops and output.status.reason in {EndReason.CANCELLED, EndReason.PREEMPTED}):
        return outcome_of(task, output, watch)
    ended = replace(output, status=replace(output.status, reason=EndReason.EXITED, exit_code=0))
    outcome = outcome_of(task, ended, watch)
    if ahead.behind is None or not outcome.complete:
        return outcome
    return replace(outcome, details={**outcome.details, STOPPED: ahead.behind})


def _outcome_at_cap(cap: Cap, output: Output, watch: ProgressWatch) -> Outcome:
    name, unit = cap.metric.name, cap.metric.unit
    worse = "under" if cap.metric.direction == "maximize" else "over"
    bound = _with_unit(f"{cap.bound:.3g}", unit)
    reason = f"had lost after {output.status.usage.elapsed_s:.3g} s: {name} {worse} {bound}"
    if cap.inputs:
        reason += f", after {watch.inputs_done} of {len(cap.inputs)} inputs"
        return Outcome(bound=cap.bound, code="capped", message=reason)
    if watch.forecast is None:
        return Outcome(bound=cap.bound, code="capped", message=reason)
    if watch.stops:
        reason += f", at its pace {_with_unit(f'{watch.forecast.value:.3g}', unit)}"
    return Outcome(bound=cap.bound, code="capped", message=reason, details={"forecast": asdict(watch.forecast)})


def run_job(job: Job, launcher: Launcher, on_lines: OnLines | None = None) -> Output:
    """Run a job to its end and return its output.

    Raises:
        LaunchError: The job could not be started.
        OSError: Its output cannot be read.
    """
    status = run(launcher, job, on_lines)
    return replace(output_in(job.folder, status), job=job)


def check_target(measurement: Measurement, target: Metric) -> None:
    """Check that the optimised metric can be compared by ratio.

    Raises:
        InvalidResult: The run did not report it, or it is not a positive number.
    """
    value = measurement.metrics.get(target.name)
    if value is None:
        # An objective may leave out a metric that it declares, and give the reason in a remark.
        why = measurement.details.get(REMARK) or "the run did not report it"
        msg = f"no {target.name}: {why}"
        raise InvalidResult(msg, code="no-metric")
    if (why := target.why_not_comparable(value)) is not None:
        raise InvalidResult(why, code="not-positive")


def check_answer(measurement: Measurement, reference: Answer | None) -> None:
    """Compare the run's answer with the baseline's.

    Raises:
        InvalidResult: The answers differ by more than the tolerance.
    """
    if measurement.answer is not None and reference is not None:
        _check_against(measurement.answer, reference)


def with_checked_answer(outcome: Outcome, reference: Answer | None) -> Outcome:
    """Return the outcome of a run whose answer is compared with the reference only after its end."""
    if not outcome.complete:
        return outcome
    try:
        check_answer(Measurement(outcome.metrics, answer=outcome.answer), reference)
    except InvalidResult as failure:
        return replace(outcome, metrics={}, answer=None, failure=failure.kind, code=failure.code, message=str(failure))
    return outcome


def _check_against(answer: Answer, reference: Answer) -> None:
    references = {part.name: part for part in reference.parts}
    if answer.parts and references:
        for part in answer.parts:
            if part.name in references:
                _check_against(part, references[part.name])
        return
    if disagreement := reference.disagreement(answer.value):
        value = _with_unit(f"{answer.value:.10g}", answer.unit)
        msg = f"{answer.name} is {value}, the reference run's is {reference.value:.10g}: {disagreement}"
        raise InvalidResult(msg, code=WRONG_ANSWER)


def _with_unit(value: str, unit: str) -> str:
    return f"{value} {unit}" if unit else value


def describe_job(job: Job, flavour: MpiFlavour | None = None, *, on_site: bool = False) -> dict[str, Any]:
    """Return a JSON-able description of a job that is enough to run it again.

    It has the command, the environment, the input files and the start of the ranks; for copied files the original
    paths, and for secret variables only the names.

    Args:
        job: The job.
        flavour: The launcher's flavour of MPI.
        on_site: Whether the launcher's jobs run on the nodes of a batch system.
    """
    copied = {one.folder / name for one in (job, *job.parts) for name, _ in one.copies}
    brought = job.software.mpi if job.software is not None else None
    flavour = brought if flavour is None else flavour_for(job.software, flavour, on_site=on_site)
    files = {
        entry.relative_to(job.folder).as_posix(): entry.read_text(encoding="utf-8", errors="replace")
        for entry in sorted(job.folder.rglob("*"))
        if entry not in copied and entry.is_file() and entry.stat().st_size <= _STORED_BYTES
    }
    described: dict[str, Any] = _command_of(job, flavour) | {
        "files": files,
        "parts": [{"name": part.name, **_command_of(part, flavour)} for part in job.parts],
    }
    variables = dict(job.software.changes.variables) if job.software else {}
    for one in (*job.parts, job):
        served = one.server.environment if one.server else {}
        described = without_secrets(described, {**variables, **one.environment, **served}, one.tuned)
    return described


def _command_of(job: Job, flavour: MpiFlavour | None) -> dict[str, Any]:
    return {
        "argv": list(job.argv),
        "environment": mask_secrets(job.environment, job.tuned),
        **({"tuned": sorted(job.tuned)} if job.tuned else {}),
        "prepare": [list(step) for step in job.prepare],
        **({"server": _server_of(job.server, job.tuned)} if job.server else {}),
        "setup": list(job.software.script) if job.software else [],
        "mpi": asdict(job.mpi) if job.mpi else None,
        "flavour": flavour_record(flavour) if job.mpi and flavour else None,
        "resources": asdict(job.resources),
        **({"place": asdict(job.place)} if job.place else {}),
        "folder": os.fspath(job.folder),
        "copies": [list(copy) for copy in job.copies],
        **({"progress_file": job.progress_file} if job.progress_file != STDOUT else {}),
    }


def _server_of(server: Server, tuned: frozenset[str]) -> dict[str, Any]:
    return asdict(server) | {"environment": mask_secrets(server.environment, tuned)}


def _resources(stored: Mapping[str, Any]) -> Resources:
    cards = (Card(one["name"], one["vendor"], tuple(one["cpus"])) for one in stored.get("cards", ()))
    return Resources(**{**stored, "cpus": tuple(stored["cpus"]), "cards": tuple(cards), "hosts": ()})


def _place(stored: Mapping[str, Any]) -> Place:
    return Place(**{**stored, "avoid": tuple(stored.get("avoid", ()))})


def job_from_description(stored: Mapping[str, Any]) -> Job:
    """Return the job of a description, without its files, and without its hosts, which belonged to an allocation."""
    mpi = stored["mpi"]
    return Job(
        argv=tuple(stored["argv"]),
        folder=Path(stored["folder"]),
        environment=dict(stored["environment"]),
        tuned=frozenset(stored.get("tuned", ())),
        prepare=tuple(tuple(step) for step in stored["prepare"]),
        server=Server.from_dict(stored["server"]) if stored.get("server") else None,
        progress_file=stored.get("progress_file", STDOUT),
        mpi=MpiStart(**{**mpi, "options": tuple(mpi["options"])}) if mpi else None,
        resources=_resources(stored["resources"]),
        place=_place(stored.get("place", {})),
        parts=tuple(replace(job_from_description(part), name=part["name"]) for part in stored.get("parts", ())),
    )
