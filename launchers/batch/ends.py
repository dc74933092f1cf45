"""How a job of a scheduler ended, by what its own status file and the scheduler say together."""

import re
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from launchers.batch_systems.base import QUEUE_LOG, SCHEDULER_LOG, JobReport
from launchers.job import EndReason, JobState, JobStatus
from launchers.node import CLAIM_FILE

_ERROR = re.compile(r"\b(error|unable|not found)\b", re.IGNORECASE)
_LINES, _CHARACTERS = 5, 400

WITHOUT_STATUS = frozenset({EndReason.PREEMPTED, EndReason.CANCELLED, EndReason.TIMED_OUT})
"""Ends that leave no time to write anything: no status is waited for after them."""

# As a shell and mpirun tell of it (128 and the signal), it was one of their own processes that got it first.
_SIGNALS = frozenset({-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM, 128 + signal.SIGKILL})
_KILLED = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})
# A program that gets this signal leaves its supervisor, which writes that down.
_KILLED_BY_OTHERS = (
    "was killed with SIGKILL, and not for a limit: by an administrator, or by a node without memory; nothing is known "
    "of its end"
)


def was_ended_by_others(status: JobStatus) -> bool:
    """Whether somebody ended the job; who, and why, only the scheduler knows.

    It signals all processes of a job, and the program may have ended before its supervisor heard of it.
    """
    by_signal = status.reason is EndReason.EXITED and status.exit_code in _SIGNALS
    return status.reason is EndReason.CANCELLED or by_signal


def with_scheduler_reason(status: JobStatus, report: JobReport) -> JobStatus:
    """Return the end of a job that somebody ended, with the scheduler's reason for it."""
    if report.state is JobState.LOST:
        return JobStatus(JobState.LOST, report.reason, usage=status.usage, message=report.message)
    reason = status.reason if report.reason in {None, EndReason.EXITED} else report.reason
    return replace(status, reason=reason, message=report.message or status.message)


def status_after_suspension(status: JobStatus) -> JobStatus:
    """Return the end of a job that was suspended meanwhile: its clock went on, so that it measured nothing."""
    if status.state is not JobState.ENDED or status.reason not in {EndReason.EXITED, EndReason.TIMED_OUT}:
        return status
    return replace(
        status, state=JobState.LOST, reason=EndReason.PREEMPTED, exit_code=None, message="was suspended for a while"
    )


def status_without_file(report: JobReport, folder: Path) -> JobStatus:
    """Return the end of a job whose supervisor wrote nothing: it was killed, or did not even start."""
    if report.reason is EndReason.EXITED and report.exit_code in _KILLED and not report.message:
        return JobStatus(JobState.LOST, message=_KILLED_BY_OTHERS)
    if report.state is JobState.LOST or report.reason in WITHOUT_STATUS or report.exit_code not in {0, None}:
        return JobStatus(report.state, report.reason, report.exit_code, message=report.message)
    return JobStatus(JobState.ENDED, EndReason.NOT_STARTED, message=f"the job script ended early: {_queue_log(folder)}")


def status_of_forgotten(number: str, folder: Path) -> JobStatus:
    """Return the end of a job that left no status, and that the scheduler has forgotten."""
    # Not claimed: what is in its log was said before the program was to start.
    if not (folder / CLAIM_FILE).exists() and _log_excerpt(folder / QUEUE_LOG):
        return JobStatus(
            JobState.ENDED, EndReason.NOT_STARTED, message=f"the job script ended early: {_queue_log(folder)}"
        )
    message = f"the scheduler knows nothing of job {number}, and it left no status in {folder}"
    return JobStatus(JobState.LOST, message=message)


def _log_excerpt(log: Path) -> str:
    """Return what a log says of an error, else its last words.

    A module command gives advice after its error, in more lines than a message holds.
    """
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        error = next((k for k, line in enumerate(lines) if _ERROR.search(line)), None)
        if error is not None:
            return " ".join(" ".join(lines[error : error + _LINES]).split())[:_CHARACTERS]
        return " ".join(" ".join(lines[-_LINES:]).split())[-_CHARACTERS:]
    return ""


def _queue_log(folder: Path) -> str:
    """Return the last words of the job's shell; of the scheduler, if there was no shell."""
    for name in (QUEUE_LOG, SCHEDULER_LOG):
        if said := _log_excerpt(folder / name):
            return said
    return f"nothing was said in {QUEUE_LOG} and {SCHEDULER_LOG} in {folder}"
