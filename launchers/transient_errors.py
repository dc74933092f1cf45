"""Errors of the system that are of this moment: they say nothing of the file that was to be read."""

import errno

# Too many open files, no memory, a fault of the disk, a network file system that hangs or was cut off.
_TRANSIENT = frozenset(
    {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.ESTALE, errno.ETIMEDOUT}
)


def is_transient(error: OSError) -> bool:
    """Whether the same may succeed later: the file is not known to be missing, or to be kept from this user."""
    return error.errno in _TRANSIENT
