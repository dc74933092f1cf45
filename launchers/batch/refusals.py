"""Why a scheduler refuses a job: for now, for its size, or for good."""

from launchers.base import LaunchError
from launchers.batch_systems.base import Refusal, Scheduler


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


def submission_error(scheduler: Scheduler, message: str, complaint: str) -> LaunchError:
    """Return the error with `message` for a scheduler's `complaint` about a submission."""
    match scheduler.refusal(complaint):
        case Refusal.NO_ROOM:
            return NoRoomError(message)
        case Refusal.TOO_LARGE:
            return RefusedError(message)
        case Refusal.ALL_JOBS:
            return RefusedError(message, all_jobs=True)
        case None:
            return QueueFullError(message) if scheduler.can_wait(complaint) else LaunchError(message)
