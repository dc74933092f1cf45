"""Folders that are removed with the processes that hold them; locks show later processes which are abandoned."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TEMPORARY = "autotune-"
"""The prefix of the names of all temporary folders."""

MARK = ".autotune-folder"
"""The file that distinguishes a held folder from a user's folder with a similar name."""


@contextmanager
def held_folder(base: Path, prefix: str, name: str | None = None) -> Iterator[Path]:
    """Provide a folder in `base` while the context lasts; it is removed when no process holds it any more.

    This also removes abandoned folders in `base` that begin with `prefix`, which killed processes left. A file in them
    shows that they are not a user's folders, and their locks show that they are abandoned; process numbers would not,
    since other containers have their own. Several processes may hold a folder with the same `name`.

    Raises:
        OSError: The folder cannot be created.
    """
    for abandoned in abandoned_folders(base, prefix):
        _remove_unless_held(abandoned)
    folder, descriptor = _make_and_hold(base, prefix, name)
    try:
        yield folder
    finally:
        os.close(descriptor)
        _remove_unless_held(folder)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Provide a folder in the system's temporary folder, and remove those of any purpose that killed processes left."""
    base = Path(tempfile.gettempdir())
    for abandoned in abandoned_folders(base, TEMPORARY):
        if (abandoned / MARK).exists():  # an empty folder with such a name may be a user's
            _remove_unless_held(abandoned)
    with held_folder(base, f"{TEMPORARY}{purpose}-") as folder:
        yield folder


def abandoned_folders(base: Path, prefix: str) -> list[Path]:
    """Return the folders that `held_folder` made in `base` with this `prefix` and that no process holds."""
    try:
        names = sorted(entry.name for entry in os.scandir(base) if entry.name.startswith(prefix))
    except OSError:
        return []
    return [base / name for name in names if _is_abandoned(base / name)]


def _make_and_hold(base: Path, prefix: str, name: str | None) -> tuple[Path, int]:
    while True:
        if name is None:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        else:
            folder = base / f"{prefix}{name}"
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        # Until the folder is locked, another process may take it for abandoned and remove it.
        try:
            descriptor = _open(folder)
        except FileNotFoundError:
            continue
        with suppress(OSError):  # on a file system without locks, no process counts it as abandoned
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), folder.lstat()):
                _mark(folder, descriptor)
                return folder, descriptor
        os.close(descriptor)


def _mark(folder: Path, descriptor: int) -> None:
    try:
        os.close(os.open(MARK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=descriptor))
    except OSError:
        os.close(descriptor)
        with suppress(OSError):
            folder.rmdir()
        raise


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_abandoned(folder: Path, *, remove: bool = False) -> bool:
    try:
        descriptor = _open(folder)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return False
        # An empty folder may be held, too: its process may have been killed before it wrote the mark.
        names = os.listdir(descriptor)  # noqa: PTH208  by its descriptor
        if names and MARK not in names:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if remove:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _remove_unless_held(folder: Path) -> None:
    _is_abandoned(folder, remove=True)
