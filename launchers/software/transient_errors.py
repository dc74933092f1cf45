"""Errors of the system that may pass, and say nothing of the file that was read."""

import errno

# Too many open files, no memory, a fault of the disk, a network file system that hangs or was cut off.
_TRANSIENT = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)


def is_transient(error: OSError) -> bool:
    """Whether the same operation may succeed later; the file is not known to be missing or forbidden."""
    return error.errno in _TRANSIENT
