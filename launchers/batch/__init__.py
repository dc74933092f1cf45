"""Jobs of a batch system: submitting, following and ending them."""

from launchers.batch.launcher import BatchLauncher, QueueFullError

__all__ = ["BatchLauncher", "QueueFullError"]
