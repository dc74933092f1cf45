"""The hold of a service folder: one supervisor at a time."""

import os
from pathlib import Path

from autotune.errors import BusyError, StorageError
from autotune.lockfile import HeldError, LockFile

_LOCK = "service.lock"


def prepared(folder: Path) -> Path:
    """Return the folder as an absolute path, after it was made private to this user.

    Raises:
        StorageError: it cannot be.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.geteuid():
            msg = f"the service folder {folder} belongs to somebody else: use --folder to name another one"
            raise StorageError(msg)
        folder.chmod(0o700)
        (folder / "studies").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        msg = f"cannot use the service folder {folder}: {error.strerror}; use --folder to name another one"
        raise StorageError(msg) from error
    return folder.resolve()


def hold(folder: Path) -> LockFile:
    """Return a file that holds the folder until it is closed, or this process ends.

    Raises:
        BusyError: another process holds it; says which.
        StorageError: the folder cannot be written.
    """
    path = folder / _LOCK
    try:
        return LockFile.hold(path)
    except HeldError as held:
        msg = f"the service folder {folder} is held by {held}: stop that service, or use --folder to name another one"
        raise BusyError(msg) from None
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror}; use --folder to name another folder"
        raise StorageError(msg) from error
