"""This user's folder on this host, for locks, sockets and tokens."""

import os
import stat
from pathlib import Path

from autotune.errors import CannotRunHereError

RAY_FOLDER = "r-"
"""The beginning of the names of Ray's folders in it."""


def user_folder() -> Path:
    """Return this user's folder for locks, sockets and tokens, the same for all processes on this machine.

    Not in TMPDIR: batch systems give each job its own, whose long name Ray's sockets do not fit into. Not in
    XDG_RUNTIME_DIR: jobs and what runs by `ssh` without a login have none, so two sessions would not see each other's
    locks, and it is removed when its user logs out, while sessions go on.

    Raises:
        CannotRunHereError: it is not a folder of this user's own that nobody else may enter.
    """
    return private_folder(Path(f"/tmp/autotune-{os.getuid()}"))  # noqa: S108  nothing but a folder of our own is used


def private_folder(folder: Path) -> Path:
    """Return a folder that only this user can enter, which is made if it is not there.

    Raises:
        CannotRunHereError: something else is there.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise CannotRunHereError(f"cannot make {folder}: {error.strerror}") from error
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise CannotRunHereError(f"{folder} is a link, or no folder: look who made it, and remove it")
    if status.st_uid != os.getuid():
        raise CannotRunHereError(f"{folder} belongs to somebody else: remove it, or ask them to")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise CannotRunHereError(
            f"others may enter {folder} (mode {mode:04o}): look what is in it, and remove it, or `chmod 700` it"
        )
    return folder
