"""Why a scheduler refuses a job: for now, for its size, or for good."""

from launchers.base import LaunchError
from launchers.batch.commands import Answer
from launchers.batch_systems.base import Refusal, Scheduler, plain_text


class QueueFullError(LaunchError):
    """The scheduler takes no more jobs now, but will later."""


class NoRoomError(QueueFullError):
    """A limit leaves no room for a job of this size; smaller jobs may be taken, and this one when others have ended.

    If the user has no other jobs, the job exceeds the limit itself.
    """


class RefusedError(LaunchError):
    """The scheduler will never take the job, so it must not be submitted again.

    With `all_jobs` the scheduler takes no job of the site.
    """

    def __init__(self, message: str, *, all_jobs: bool = False) -> None:
        super().__init__(message)
        self.all_jobs = all_jobs


def submission_error(scheduler: Scheduler, command: str, answer: Answer) -> LaunchError:
    """Return the error for the answer of a command that submitted no job."""
    message, complaint = f"{command} does not take the job: {answer.complaint}", answer.complaint
    # The command was there when the session began, so its folder is away, as the scheduler may be.
    if answer.is_unknown or answer.is_missing:
        return QueueFullError(message)
    match scheduler.refusal(complaint):
        case Refusal.NO_ROOM:
            return NoRoomError(message)
        case Refusal.TOO_LARGE:
            return RefusedError(message)
        case Refusal.ALL_JOBS:
            return RefusedError(message, all_jobs=True)
        case None:
            return QueueFullError(message) if scheduler.can_wait(complaint) else LaunchError(message)


def unnamed_job_error(command: str, answer: Answer) -> RefusedError:
    """Return the error for the answer of a command that submitted a job but does not say which."""
    said = " ".join(plain_text(answer.stdout).split())
    msg = (
        f"{command} took the job, but its answer does not name one job, so the job cannot be followed: "
        f"{said or 'no output'}; the job ends as soon as it starts. Use a {command} that prints the number of its job, "
        "and no other number, on a line of its own"
    )
    return RefusedError(msg, all_jobs=True)
