"""The audit log: who ordered what, and when."""

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
    """A file of JSON lines that only its user reads, and that is only ever appended to.

    A long one is put aside, with a number in its name, and the next line begins another; nothing is removed.
    An order is written down before it is carried out: what cannot be written down is not done. One that was refused has
    a second line, which says why.
    """

    def __init__(self, path: Path, most_bytes: int = _MOST_BYTES) -> None:
        """Use a file, which need not be there; `most_bytes` is how long it may get."""
        self._path = path
        self._most_bytes = most_bytes

    @contextmanager
    def order(self, by: str, what: str, name: str, details: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Write an order down, and whether it was refused.

        Raises:
            StorageError: it cannot be written.
        """
        self.note(by, what, name, details)
        try:
            yield
        except (AutotuneError, ProblemError) as error:
            self.note(by, what, name, {"refused": str(error)})
            raise

    def note(self, by: str, what: str, name: str, details: Mapping[str, Any] | None = None) -> None:
        """Write a line: who did what, with the study or token of which name, and when.

        Raises:
            StorageError: it cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        said = {"when": now, "who": by, "what": what, "name": name} | ({"details": details} if details else {})
        line = json.dumps(said) + "\n"
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._put_aside()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.write(descriptor, line.encode())
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            msg = f"the order cannot be written down in {self._path}: {error.strerror or error}"
            raise StorageError(msg) from error

    def _put_aside(self) -> None:
        """Put a long file aside, where that can be done; if two do at once, nothing is written over."""
        with suppress(OSError):
            if self._path.lstat().st_size < self._most_bytes:
                return
            older = next(path for number in count(1) if not (path := self._older(number)).exists())
            os.link(self._path, older, follow_symlinks=False)
            self._path.unlink()

    def _older(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.stem}.{number}{self._path.suffix}")
