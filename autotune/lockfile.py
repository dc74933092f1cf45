"""Locks in the file system: files that one process holds at a time, and folders that end with their process."""

import errno
import fcntl
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

_HOLDER = re.compile(r"process (\d+) on (\S+) since ([^\n]+?)(?:, (.+))?", re.DOTALL)

TEMPORARY = "autotune-"
"""The beginning of the names of all temporary folders."""

MARK = ".autotune-folder"
"""The file that tells a folder that is removed with its processes from one that a user named alike."""

_BEGIN = b"process "


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock file, as it wrote itself into it; `work` says what for, if it did."""

    pid: int
    host: str
    since: str
    work: str = ""

    @classmethod
    def this(cls, work: str = "") -> Self:
        """Return this process."""
        return cls(os.getpid(), socket.gethostname(), datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"), work)

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Read what `str` writes; None for anything else."""
        found = _HOLDER.fullmatch(text.strip())
        return cls(int(found[1]), found[2], found[3], found[4] or "") if found else None

    @property
    def is_here(self) -> bool:
        """Whether it is this process."""
        return (self.pid, self.host) == (os.getpid(), socket.gethostname())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}" + (f", {self.work}" if self.work else "")


class HeldError(Exception):
    """Another process holds a lock file; the message names it."""


class LockFile:
    """An open lock file; the system releases it when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        """Take over an open file descriptor; use `open`."""
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path, mode: int = 0o600, *, create: bool = True) -> Self:
        """Open a lock file without locking it.

        The holder overwrites the file, so no link is followed: where others may write, it may lead to one of ours.

        Raises:
            OSError: it cannot be written, is a link, or is not there and is not to be created.
        """
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(path, flags, mode)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "it is a link: look who made it, and remove it", str(path)) from error
            raise
        return cls(descriptor)

    @classmethod
    def hold(cls, path: Path, work: str = "") -> Self:
        """Open a lock file, lock it, and write this process into it as its holder, which does that `work`.

        Raises:
            HeldError: another process holds it.
            OSError: it cannot be opened or locked.
        """
        file = cls.open(path)
        try:
            if not file.lock():
                raise HeldError(file.holder() or "another process")  # noqa: TRY301  the file is closed for any error
        except BaseException:
            file.close()
            raise
        file.sign(work)
        return file

    def lock(self) -> bool:
        """Lock it; False if another process, or another opening of this one, has locked it.

        Raises:
            OSError: the file system has no locks.
        """
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def sign(self, work: str = "") -> None:
        """Write this process into the file as its holder, which does that `work`; a full disk is no reason to fail.

        What is no lock file stays as it is: there may be a hard link to another file of this user.
        """
        with suppress(OSError):
            if not _BEGIN.startswith(os.pread(self._descriptor, len(_BEGIN), 0)):
                return
            os.truncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(Holder.this(work)).encode(), 0)

    def holder(self) -> Holder | None:
        """Return who signed it last; None if nobody did."""
        return Holder.read(os.pread(self._descriptor, 5000, 0).decode(errors="replace"))

    def stat(self) -> os.stat_result:
        """Return which file it is."""
        return os.fstat(self._descriptor)

    def close(self) -> None:
        """Release it."""
        os.close(self._descriptor)


@contextmanager
def held_folder(base: Path, prefix: str, name: str | None = None) -> Iterator[Path]:
    """Provide a folder in `base` while the context lasts, which is removed when nobody holds it any more.

    Such folders in `base` that begin with `prefix` and that nobody holds are removed: those of processes that were
    killed. They are known by a file in them, since users name folders, too, and asked by their locks, since a process
    of another container has no number here. Several processes may hold one that has a `name`.

    Raises:
        OSError: it cannot be made.
    """
    remove_abandoned(base, prefix)
    folder, descriptor = _made_and_held(base, prefix, name)
    try:
        yield folder
    finally:
        os.close(descriptor)
        _remove_unless_held(folder)


@contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Provide a folder in the system's folder for temporary files; those that killed processes left are removed."""
    with held_folder(Path(tempfile.gettempdir()), f"{TEMPORARY}{purpose}-") as folder:
        yield folder


def abandoned_folders(base: Path, prefix: str) -> list[Path]:
    """Return the folders that `held_folder` made in `base` with this `prefix` and that no process holds."""
    try:
        names = sorted(entry.name for entry in os.scandir(base) if entry.name.startswith(prefix))
    except OSError:
        return []
    return [base / name for name in names if _is_abandoned(base / name)]


def remove_abandoned(base: Path, prefix: str) -> None:
    """Remove the folders that `held_folder` made in `base` with this `prefix` and that no process holds."""
    for folder in abandoned_folders(base, prefix):
        _remove_unless_held(folder)


def _made_and_held(base: Path, prefix: str, name: str | None) -> tuple[Path, int]:
    while True:
        if name is None:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        else:
            folder = base / f"{prefix}{name}"
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
        # Another process may have found it before it was held, and have removed it: before it is opened, or after.
        try:
            descriptor = _opened(folder)
        except FileNotFoundError:
            continue
        with suppress(OSError):  # a file system without locks: nobody takes it for abandoned there
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


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_abandoned(folder: Path, *, remove: bool = False) -> bool:
    try:
        descriptor = _opened(folder)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return False
        # Its process may have been killed before it marked the folder.
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
