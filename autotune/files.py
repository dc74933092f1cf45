"""Replacing files and removing folders atomically: a reader finds the old or the new content, never a part."""

import errno
import os
import secrets
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path


def replace_file(path: Path, text: str, *, private: bool = False, durable: bool = True) -> None:
    """Replace the content of a file.

    Args:
        path: The file; its folder must exist.
        text: The whole content.
        private: Let only this user read it; otherwise the umask decides.
        durable: Wait until it is on disk, so that a crash of the machine leaves neither an empty nor the old file.

    Raises:
        OSError: The file cannot be written; the old content remains.
    """
    draft = path.with_name(f".{path.name[:40]}.{os.getpid()}-{threading.get_ident()}")
    try:
        draft.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600 if private else 0o666), "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if durable:
            sync_folder(path.parent)
    except BaseException:  # Ctrl-C, too
        with suppress(OSError):
            draft.unlink()
        raise


def write_output(path: Path, text: str, *, private: bool = False) -> None:
    """Write a file for the user, whole or not at all: an older file stays if that fails.

    Raises:
        OSError: The file cannot be written, or is a link of another user.
    """
    refuse_link_of_others(path)
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")  # a pipe or a terminal cannot be replaced
    else:
        # Only a link is resolved: the kernel itself may refuse to follow those above it.
        replace_file(path.resolve() if path.is_symlink() else path, text, private=private)


def refuse_link_of_others(path: Path) -> None:
    """Refuse to write through a link that another user made, perhaps to a file of this one; root made `/dev/stdout`.

    Raises:
        OSError: The path is such a link.
    """
    if path.is_symlink() and path.lstat().st_uid not in {0, os.geteuid()}:
        raise OSError(errno.ELOOP, "it is a link of another user: look where it leads")


def private_mode(folder: Path) -> int:
    """Return the mode of a new file in `folder`: for its user only, unless the folder is shared with a group.

    A folder is shared on purpose if its group can write to it, and new files get that group (`chmod g+ws`).
    """
    shared = stat.S_ISGID | stat.S_IWGRP
    return 0o660 if folder.stat().st_mode & shared == shared else 0o600


def make_private_folder(folder: Path) -> None:
    """Make a folder and its parents if they are missing, with the mode that `private_mode` gives to files."""
    if not folder.exists():
        make_private_folder(folder.parent)
        mode = private_mode(folder.parent)
        folder.mkdir(mode=mode | (mode >> 2 & 0o110), exist_ok=True)


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to disk, after files were created, renamed or removed there."""
    # Some network file systems refuse this for folders, but write them at once.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_DISCARDED = ".discarded"


def discard(folder: Path) -> None:
    """Remove a folder: rename it, which is atomic, then delete it.

    If the deletion is interrupted, `sweep_discarded` finishes it.

    Raises:
        OSError: The folder could not be renamed and is unchanged.
    """
    # A host that was cut off may still write to the folder, which then has another name.
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}{_DISCARDED}")
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def sweep_discarded(*around: Path) -> None:
    """Remove the remains of discarded folders whose deletion was interrupted or failed."""
    for folder in around:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                is_ours = entry.name.startswith(".") and entry.name.endswith(_DISCARDED)
                if is_ours and entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
