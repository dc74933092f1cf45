"""The lock of a study: one coordinator at a time."""

import fcntl
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from autotune.errors import BusyError, StorageError


class StudyLock:
    """Held by the coordinator of a study; released by the system when the process ends, however it ends."""

    def __init__(self, descriptor: int) -> None:
        """Hold a locked file descriptor; use `acquire`."""
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path, study: str) -> Self:
        """Take the lock file `path` of `study`.

        Raises:
            BusyError: another process works on the study; says which.
            StorageError: the lock file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror}; use --storage to keep the study elsewhere"
            raise StorageError(msg) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 500).decode(errors="replace").strip() or "another process"
            os.close(descriptor)
            msg = (
                f"study {study!r} is being worked on by {holder}; wait until that ends or stop it "
                "(Ctrl-C there, or `kill PID`), then use the same command again"
            )
            raise BusyError(msg) from None
        except OSError as error:
            os.close(descriptor)
            msg = f"{path} cannot be locked ({error.strerror}); use --storage on a file system with locks"
            raise StorageError(msg) from error
        # Who holds it is a courtesy: a full disk must not keep a study from going on.
        with suppress(OSError):
            os.truncate(descriptor, 0)
            now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()} since {now}".encode(), 0)
        return cls(descriptor)

    def release(self) -> None:
        """Give the study up."""
        os.close(self._descriptor)
