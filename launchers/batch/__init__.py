"""Jobs of a batch system: submitting, following and ending them."""

from launchers.batch.launcher import BatchLauncher
from launchers.batch.refusals import NoRoomError, QueueFullError, RefusedError

__all__ = ["BatchLauncher", "NoRoomError", "QueueFullError", "RefusedError"]
