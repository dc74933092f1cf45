"""This user's folder on this host, for locks, sockets and tokens."""

import fcntl
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from autotune.errors import CannotRunHereError
from autotune.user_paths import TEMPORARY, find_user_folder, note_file, noted_folder, owner, usual_folder

RAY_FOLDER = "r-"
"""The prefix of the names of Ray's folders in the user's folder."""


def user_folder() -> Path:
    """Return this user's folder for locks, sockets and tokens, the same for all processes on this machine.

    It is not in TMPDIR, because batch systems give each job another one, with a name too long for Ray's sockets. It is
    not in XDG_RUNTIME_DIR, because jobs and commands run by `ssh` have none, so that sessions would not see each
    other's locks, and because the system removes that folder at logout while sessions still run. Where each job has a
    /tmp of its own, AUTOTUNE_USER_FOLDER names a folder that all jobs of a node see.

    If another user has made a folder with the usual name, this makes one with a name that cannot be guessed, and notes
    it in the user's home for all other processes.

    Raises:
        CannotRunHereError: The folder belongs to another user, or others may enter it.
    """
    folder = find_user_folder()
    if folder == usual_folder() and owner(folder) not in {None, os.getuid()}:
        folder = _make_other_folder()
    return private_folder(folder)


def other_folder_note() -> str | None:
    """Return what a user should know if this user's folder is not the usual one because another user took the name."""
    folder = find_user_folder()
    if folder == usual_folder() or "AUTOTUNE_USER_FOLDER" in os.environ:
        return None
    return f"{usual_folder()} was taken by another user: locks of cores, sockets and tokens are in {folder}"


def _make_other_folder() -> Path:
    note = note_file()
    try:
        note.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(note, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
            with suppress(OSError):  # a home without locks: two processes that begin now may make two folders
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if (noted := noted_folder(note)) is not None:
                return noted
            folder = Path(tempfile.mkdtemp(prefix="atu-", dir=TEMPORARY))
            try:
                file.truncate(0)
                file.write(str(folder))
                file.flush()
            except OSError:
                folder.rmdir()
                raise
    except OSError as error:
        msg = (
            f"{usual_folder()} belongs to somebody else, and {note}, which would name another folder, cannot be "
            f"written: {error.strerror}; let AUTOTUNE_USER_FOLDER name a folder of yours, with a short path"
        )
        raise CannotRunHereError(msg) from error
    return folder


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
