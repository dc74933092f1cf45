"""Jobs of a batch system: submit, follow and end them."""

from launchers.batch.launcher import BatchLauncher
from launchers.batch.refusals import NoRoomError, QueueFullError, RefusedError

__all__ = ["BatchLauncher", "NoRoomError", "QueueFullError", "RefusedError"]
