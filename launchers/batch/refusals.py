"""Why a scheduler takes no job: for now, for its size, or for good."""

from launchers.base import LaunchError
from launchers.batch_systems.base import Refusal, Scheduler


class QueueFullError(LaunchError):
    """The scheduler takes no further job now; it will later."""


class NoRoomError(QueueFullError):
    """A limit leaves no room for a job of this size: a smaller one may be taken, and this one when others have ended.

    If there are no others, it is larger than the limit itself.
    """


class RefusedError(LaunchError):
    """The scheduler will never take the job: it need not be sent again. With `all_jobs` it takes none of the site's."""

    def __init__(self, message: str, *, all_jobs: bool = False) -> None:
        super().__init__(message)
        self.all_jobs = all_jobs


def submission_error(scheduler: Scheduler, message: str, complaint: str) -> LaunchError:
    """Return the error with `message` for what a scheduler complained of when it took no job."""
    match scheduler.refusal(complaint):
        case Refusal.NO_ROOM:
            return NoRoomError(message)
        case Refusal.TOO_LARGE:
            return RefusedError(message)
        case Refusal.ALL_JOBS:
            return RefusedError(message, all_jobs=True)
        case None:
            return QueueFullError(message) if scheduler.can_wait(complaint) else LaunchError(message)
