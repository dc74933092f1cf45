"""How a job of a scheduler ended, judged from its own status file and the scheduler's report together."""

import math
import re
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from launchers.batch_systems.base import QUEUE_LOG, SCHEDULER_LOG, JobReport, Scheduler
from launchers.job import EndReason, JobState, JobStatus
from launchers.node import CLAIM_FILE
from launchers.supervisor import WALL_TIME_REACHED

GONE_FILE = ".autotune-gone"
"""Holds a job's number and since when (seconds since 1970) it has been gone without a status file."""

_ERROR = re.compile(r"\b(error|unable|not found)\b", re.IGNORECASE)
_LINES, _CHARACTERS = 5, 400
_MINUTE_S = 60.0

WITHOUT_STATUS = frozenset({EndReason.PREEMPTED, EndReason.CANCELLED, EndReason.TIMED_OUT})
"""Ends that leave a job no time to write a status file, so that waiting for one is useless."""

# Negative codes are the program's own; 128 plus the signal is how a shell or mpirun reports a signal of its child.
_SIGNALS = frozenset({-signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM, 128 + signal.SIGKILL})
_KILLED = frozenset({-signal.SIGKILL, 128 + signal.SIGKILL})
_TIMED_OUT = JobReport(JobState.ENDED, EndReason.TIMED_OUT)
_ENDED_UNREPORTED = JobReport(
    JobState.LOST,
    EndReason.PREEMPTED,
    message="was preempted, or deleted by somebody: the batch system does not say which",
)
# In the messages of supervisors and batch systems.
_NO_MEMORY = "lack of memory"
# If only the program had been killed, its supervisor would have recorded it.
_KILLED_BY_OTHERS = (
    "was killed with SIGKILL by an administrator or for lack of memory on the node, not for a limit; "
    "how it ended is not known"
)


def was_ended_by_others(status: JobStatus) -> bool:
    """Whether someone else ended the job; only the scheduler knows who and why.

    The scheduler signals all processes of a job, so the program may end before its supervisor receives the signal.
    """
    by_signal = status.reason is EndReason.EXITED and status.exit_code in _SIGNALS
    return status.reason is EndReason.CANCELLED or by_signal


def with_scheduler_reason(status: JobStatus, report: JobReport) -> JobStatus:
    """Return the end of a job that someone else ended, with the scheduler's reason."""
    if report.state is JobState.LOST:
        return JobStatus(JobState.LOST, report.reason, usage=status.usage, message=report.message)
    if report.reason is EndReason.EXITED and report.message:
        # It was killed for what it used, after its supervisor was told to end.
        return replace(status, reason=report.reason, exit_code=report.exit_code, message=report.message)
    reason = status.reason if report.reason in {None, EndReason.EXITED} else report.reason
    return replace(status, reason=reason, message=report.message or status.message)


def status_of_unreported_end(status: JobStatus, scheduler: Scheduler, folder: Path) -> JobStatus:
    """Return the end of a job that its scheduler no longer knows; `status` is what its supervisor recorded.

    A supervisor that was told to end shows that the batch system or a person ended the job, unlike a job that was lost.
    """
    if status.reason is not EndReason.CANCELLED:
        return status
    if _NO_MEMORY in status.message:
        return replace(status, reason=EndReason.EXITED, exit_code=status.exit_code or -signal.SIGKILL)
    report = _TIMED_OUT if status.message.startswith(WALL_TIME_REACHED) else _ENDED_UNREPORTED
    return with_scheduler_reason(status, scheduler.end_in_log(_read_log(folder / SCHEDULER_LOG)) or report)


def status_after_suspension(status: JobStatus) -> JobStatus:
    """Return the end of a job that was suspended meanwhile: the clock kept running, so it measured nothing."""
    if status.state is not JobState.ENDED or status.reason not in {EndReason.EXITED, EndReason.TIMED_OUT}:
        return status
    return replace(
        status, state=JobState.LOST, reason=EndReason.PREEMPTED, exit_code=None, message="was suspended for a while"
    )


def waits_for_file(report: JobReport | None, patience_s: float) -> str:
    """Return what a job that is gone waits for, for a person."""
    if report is None:
        what = "the scheduler no longer knows its job"
    elif report.message and report.state is JobState.LOST:
        what = report.message
    else:
        what = "its job was killed with SIGKILL" if report.exit_code in _KILLED else "its job has ended"
    return f"{what}; waiting up to {_duration(patience_s)} for its result file"


def is_killed(report: JobReport | None) -> bool:
    """Whether a report says that the job's supervisor cannot have ended in order: killed, or its node has failed."""
    return report is not None and (report.state is JobState.LOST or report.exit_code in _KILLED)


def gone_for_s(folder: Path, number: str) -> float:
    """Return how long a job has been gone without a status file, also for earlier sessions; note it the first time."""
    now, file = time.time(), folder / GONE_FILE
    with suppress(OSError, ValueError):
        job, since = file.read_text(encoding="ascii").split()
        if job == number:
            return max(0.0, now - float(since))
    with suppress(OSError, ValueError):
        file.write_text(f"{number} {now}", encoding="ascii")
    return 0.0


def gone_since(folder: Path) -> float:
    """Return since when a job has been gone without a status file, in seconds since 1970; infinite if it is not."""
    with suppress(OSError, ValueError):
        _, since = (folder / GONE_FILE).read_text(encoding="ascii").split()
        return float(since)
    return math.inf


def _duration(seconds: float) -> str:
    return f"{seconds / _MINUTE_S:.0f} min" if seconds >= _MINUTE_S else f"{seconds:.0f} s"


def status_without_file(report: JobReport, folder: Path) -> JobStatus:
    """Return the end of a job whose supervisor wrote no status: it was killed or did not start."""
    if report.reason is EndReason.EXITED and report.exit_code in _KILLED and not report.message:
        return JobStatus(JobState.LOST, message=_KILLED_BY_OTHERS)
    if report.state is JobState.LOST or report.reason in WITHOUT_STATUS or report.exit_code not in {0, None}:
        return JobStatus(report.state, report.reason, report.exit_code, message=report.message)
    return JobStatus(JobState.ENDED, EndReason.NOT_STARTED, message=f"the job script ended early: {_queue_log(folder)}")


def status_of_forgotten(number: str, folder: Path) -> JobStatus:
    """Return the end of a job without a status that the scheduler no longer knows."""
    # The folder was not claimed, so the log was written before the program could start.
    if not (folder / CLAIM_FILE).exists() and _log_excerpt(folder / QUEUE_LOG):
        return JobStatus(
            JobState.ENDED, EndReason.NOT_STARTED, message=f"the job script ended early: {_queue_log(folder)}"
        )
    message = f"the scheduler knows nothing of job {number}, and it left no status in {folder}"
    return JobStatus(JobState.LOST, message=message)


def _log_excerpt(log: Path) -> str:
    """Return the first error in a log and the lines after it; without an error, the last lines.

    A module command prints advice after its error, longer than a message may be, so the last lines may lack the error.
    """
    lines = _read_log(log).split("\n")
    error = next((k for k, line in enumerate(lines) if _ERROR.search(line)), None)
    if error is not None:
        return " ".join(" ".join(lines[error : error + _LINES]).split())[:_CHARACTERS]
    return " ".join(" ".join(lines[-_LINES:]).split())[-_CHARACTERS:]


def _read_log(log: Path) -> str:
    with suppress(OSError):
        return log.read_text(encoding="utf-8", errors="replace")
    return ""


def _queue_log(folder: Path) -> str:
    """Return an excerpt of the log of the job's shell, or of the scheduler if the shell did not start."""
    for name in (QUEUE_LOG, SCHEDULER_LOG):
        if excerpt := _log_excerpt(folder / name):
            return excerpt
    return f"{QUEUE_LOG} and {SCHEDULER_LOG} in {folder} are empty"
