"""This user's folder on this host, for locks, sockets and tokens."""

import os
import stat
from pathlib import Path

from autotune.errors import CannotRunHereError

RAY_FOLDER = "r-"
"""The prefix of the names of Ray's folders in the user's folder."""


def user_folder() -> Path:
    """Return this user's folder for locks, sockets and tokens, the same for all processes on this machine.

    It is not in TMPDIR, because batch systems give each job another one, with a name too long for Ray's sockets. It is
    not in XDG_RUNTIME_DIR, because jobs and commands run by `ssh` have none, so that sessions would not see each
    other's locks, and because the system removes that folder at logout while sessions still run. Where each job has a
    /tmp of its own, AUTOTUNE_USER_FOLDER names a folder that all jobs of a node see.

    Raises:
        CannotRunHereError: The folder belongs to another user, or others may enter it.
    """
    usual = f"/tmp/autotune-{os.getuid()}"  # noqa: S108  nothing but a folder of our own is used
    return private_folder(Path(os.environ.get("AUTOTUNE_USER_FOLDER") or usual))


def private_folder(folder: Path) -> Path:
    """Return a folder that only this user can enter; create it if it is missing.

    Raises:
        CannotRunHereError: The path is not such a folder.
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
