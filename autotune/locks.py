"""Locks: files that one process holds at a time. Whoever is refused is told which process holds one, and since when.

The system releases a file when its process ends, however it ends. No link is followed, and nothing is written over that
is no lock file: where others may write, a name may lead to a file of this user.
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
"""Tells a user for whom a session waits."""

_HOLDER = re.compile(r"process (\d+) on (\S+) since ([^\n]+?)(?:, (.+))?", re.DOTALL)
_BEGIN = b"process "
_POLL_S = 0.5


class IfHeld(StrEnum):
    """What to do when another process holds a study, or what it needs."""

    LEAVE = "leave"
    WAIT = "wait"
    TAKE_OVER = "take over"


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


def claim_when_free(claim: Callable[[], Claimed], wait_by: WaitBy | None) -> Claimed:
    """Return what `claim` returns; with `wait_by`, wait until nobody else has it, and tell it for whom.

    Raises:
        BusyError: somebody else has it.
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
    """Lock a file at `path`, beside a storage; False if another process has locked it.

    Raises:
        StorageError: its file system has no locks.
    """
    try:
        return file.lock()
    except OSError as error:
        msg = f"{path} cannot be locked ({error.strerror}); use --storage on a file system with locks"
        raise StorageError(msg) from error


def other_holder(path: Path) -> str | None:
    """Return the process that holds a lock file, in words; None if it is free, or held by this process."""
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
    """Return the process of this host that holds a lock file, without taking it from whoever wants it now.

    None if nobody does, it is this process, or that cannot be seen: processes of other users do not show their files.
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
