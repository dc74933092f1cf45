"""Lock files, which one process holds at a time, and which name their holder and its start for others.

The system releases a lock when its process ends in any way. Opening a lock file follows no link, and only lock files
are overwritten: where other users can write, a name may lead to another file of this user.
"""

import errno
import fcntl
import os
import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Self, TypeVar

from autotune.errors import BusyError, StorageError

Claimed = TypeVar("Claimed")
WaitBy = Callable[[str], None]
"""Gets the message about the process that a session waits for."""

_HOLDER = re.compile(r"process (\d+) on (\S+) since ([^\n]+?)(?:, (.+))?", re.DOTALL)
_BEGIN = b"process "
_POLL_S = 0.5


class IfHeld(StrEnum):
    """The reaction when another process holds a study or its resources."""

    LEAVE = "leave"
    WAIT = "wait"
    TAKE_OVER = "take over"


@dataclass(frozen=True)
class Holder:
    """The process that holds a lock file, as it signed it; `work` is the purpose, if it gave one."""

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
        """Read the text that `str` returns; None for other text."""
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

    def __init__(self, descriptor: int, mode: int) -> None:
        """Wrap an open file descriptor, which this object closes; use `open`."""
        self._descriptor, self._mode = descriptor, mode

    @classmethod
    def open(cls, path: Path, mode: int = 0o600, *, create: bool = True) -> Self:
        """Open a lock file without locking it.

        Links are not followed, since the holder overwrites the file, and another user's link may lead to one of ours.

        Raises:
            OSError: The file cannot be written, is a link, or does not exist and `create` is False.
        """
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        try:
            descriptor = os.open(path, flags, mode)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise OSError(errno.ELOOP, "it is a link: look who made it, and remove it", str(path)) from error
            raise
        return cls(descriptor, mode)

    @classmethod
    def hold(cls, path: Path, work: str = "") -> Self:
        """Open a lock file, lock it, and sign it with this process and the purpose `work`.

        Raises:
            HeldError: Another process holds it.
            OSError: It cannot be opened or locked.
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

    def lock(self, *, shared: bool = False) -> bool:
        """Lock the file; return False if another process, or another descriptor of this one, holds the lock.

        Args:
            shared: Let others hold the file so, too.

        Raises:
            OSError: The file system has no locks.
        """
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def sign(self, work: str = "") -> None:
        """Write this process and the purpose `work` into the file; ignore errors such as a full disk.

        Take away excess permissions, since whoever can read the file can hold the lock.
        A file with other content is left unchanged, since it may be a hard link to another file of this user.
        """
        with suppress(OSError):
            if not _BEGIN.startswith(os.pread(self._descriptor, len(_BEGIN), 0)):
                return
            os.truncate(self._descriptor, 0)
            os.pwrite(self._descriptor, str(Holder.this(work)).encode(), 0)
            os.fchmod(self._descriptor, self._mode & self.stat().st_mode)

    def holder(self) -> Holder | None:
        """Return the process that signed the file last; None for an unsigned file."""
        return Holder.read(os.pread(self._descriptor, 5000, 0).decode(errors="replace"))

    def stat(self) -> os.stat_result:
        """Return the file's status, which identifies it."""
        return os.fstat(self._descriptor)

    def close(self) -> None:
        """Release the lock and close the file."""
        os.close(self._descriptor)


def claim_when_free(claim: Callable[[], Claimed], wait_by: WaitBy | None) -> Claimed:
    """Return what `claim` returns; with `wait_by`, repeat it until it is not busy, with a message for each new holder.

    Raises:
        BusyError: Another process holds the claimed thing, and `wait_by` is None.
    """
    told = ""
    while True:
        try:
            return claim()
        except BusyError as error:
            if wait_by is None:
                raise
            if str(error) != told:
                wait_by(f"waiting (Ctrl-C leaves): {error}")
                told = str(error)
        time.sleep(_POLL_S)


def lock(file: LockFile, path: Path) -> bool:
    """Lock a file at `path`, beside a storage; return False if another process holds it.

    Raises:
        StorageError: The file system has no locks.
    """
    try:
        return file.lock()
    except OSError as error:
        msg = f"{path} cannot be locked ({error.strerror}); use --storage on a file system with locks"
        raise StorageError(msg) from error


def other_holder(path: Path) -> str | None:
    """Return the other process that holds a lock file, in words; None if no other process does."""
    try:
        file = LockFile.open(path, create=False)
    except OSError:
        return None
    try:
        if lock(file, path):
            return None
        holder = file.holder()
        return None if holder is not None and holder.is_here else str(holder or "another process")
    finally:
        file.close()


def find_local_holder(path: Path) -> Holder | None:
    """Return the other process of this host that holds a lock file, without locking it even for a moment.

    Return None if there is no such process, or if it belongs to another user and so hides its open files.
    """
    try:
        file = LockFile.open(path, create=False)
    except OSError:
        return None
    try:
        holder = file.holder()
        if holder is None or holder.host != socket.gethostname() or holder.is_here:
            return None
        return holder if has_open(holder.pid, file.stat()) else None
    except OSError:
        return None
    finally:
        file.close()


def has_open(pid: int, file: os.stat_result) -> bool:
    """Whether a process of this host has a file open."""
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found = entry.stat()
            if (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino):
                return True
    return False
