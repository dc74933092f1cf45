"""The path of this user's folder for locks, sockets and tokens, which `autotune.execution.user_folder` makes."""

import os
import pwd
import socket
from pathlib import Path

TEMPORARY = Path("/tmp")  # noqa: S108  nothing but a folder of our own is used


def find_user_folder() -> Path:
    """Return the path of this user's folder, which need not exist.

    A folder that was made for want of the usual one is used until it is removed: processes may hold locks there.
    """
    if given := os.environ.get("AUTOTUNE_USER_FOLDER"):
        return Path(given)
    usual = usual_folder()
    return usual if owner(usual) == os.getuid() else noted_folder(note_file()) or usual


def usual_folder() -> Path:
    """Return the path of this user's folder unless the environment, or another user who took the name, changes it."""
    return TEMPORARY / f"autotune-{os.getuid()}"


def note_file() -> Path:
    """Return the file with the name of this user's other folder on this host, whatever the environment says."""
    # Hosts, and containers with a /tmp of their own, may share the home.
    place = TEMPORARY.stat()
    name = f"user-folder-{socket.gethostname()}-{place.st_dev}-{place.st_ino}"
    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container that does not know this user
        home = os.environ.get("HOME", os.sep)
    return Path(home, ".cache", "autotune", name)


def noted_folder(note: Path) -> Path | None:
    """Return the folder that such a file names, if it is this user's; None otherwise."""
    try:
        folder = Path(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return folder if folder.is_absolute() and owner(folder) == os.getuid() else None


def owner(folder: Path) -> int | None:
    """Return the user id of a folder's owner; None if there is no such folder."""
    try:
        return folder.lstat().st_uid
    except OSError:
        return None
