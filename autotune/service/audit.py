"""The audit log: who ordered what, and when."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError, StorageError
from autotune.service.problems import ProblemError

_MOST_BYTES = 16 * 2**20


class AuditLog:
    """A file of JSON lines that only its user can read, and that only grows.

    An order is written before it is carried out: an order that cannot be written is not carried out. A refused order
    has a second line, which says why. A file that has become long gets a number in its name, and a new one begins;
    nothing is removed.
    """

    def __init__(self, path: Path, most_bytes: int = _MOST_BYTES) -> None:
        """Append to a file, which need not exist, until it has `most_bytes`."""
        self._path = path
        self._most_bytes = most_bytes

    @contextmanager
    def order(self, by: str, what: str, name: str, details: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Write an order, and afterwards whether it was refused.

        Raises:
            StorageError: the order cannot be written.
        """
        self.note(by, what, name, details)
        try:
            yield
        except (AutotuneError, ProblemError) as error:
            self.note(by, what, name, {"refused": str(error)})
            raise

    def note(self, by: str, what: str, name: str, details: Mapping[str, Any] | None = None) -> None:
        """Write a line: when, who did what, and the name of the study or token.

        Raises:
            StorageError: the line cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        said = {"when": now, "who": by, "what": what, "name": name} | ({"details": details} if details else {})
        line = json.dumps(said) + "\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._rename_long()
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                _append_line(descriptor, line.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            msg = f"the order cannot be written down in {self._path}: {error.strerror or error}"
            raise StorageError(msg) from error

    def _rename_long(self) -> None:
        """Rename a long file if possible; if two processes do at once, neither overwrites the other's."""
        with suppress(OSError):
            if self._path.lstat().st_size < self._most_bytes:
                return
            older = next(path for number in count(1) if not (path := self._older(number)).exists())
            os.link(self._path, older, follow_symlinks=False)
            self._path.unlink()

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.{number}{self._path.suffix}")


def _append_line(descriptor: int, line: bytes) -> None:
    """Append a whole line to a file, or nothing.

    Raises:
        OSError: the line was not written.
    """
    # `autotune serve token` writes to the same file.
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    size = os.fstat(descriptor).st_size
    is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
    line = b"\n" + line if is_cut else line
    try:
        written = os.write(descriptor, line)
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise
    if written < len(line):
        # The order is not carried out, so the log must not name it.
        os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
