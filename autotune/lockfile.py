"""Lock files: held by one process at a time, which writes its name into them."""

import fcntl
import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

_HOLDER = re.compile(r"process (\d+) on (\S+) since ([^\n]+?)(?:, (.+))?", re.DOTALL)


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

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}" + (f", {self.work}" if self.work else "")


class LockFile:
    """An open lock file; the system releases it when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        """Take over an open file descriptor; use `open`."""
        self._descriptor = descriptor

    @classmethod
    def open(cls, path: Path, mode: int = 0o600, *, create: bool = True) -> Self:
        """Open a lock file without locking it.

        Raises:
            OSError: it cannot be written, or is not there and is not to be created.
        """
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return cls(os.open(path, flags, mode))

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
        """Write this process into the file as its holder, which does that `work`; a full disk is no reason to fail."""
        with suppress(OSError):
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
