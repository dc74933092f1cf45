"""The audit log: who ordered what, and when."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError, StorageError
from autotune.service.problems import ProblemError


class AuditLog:
    """A file of JSON lines that only its user reads, and that is only ever appended to.

    An order is written down before it is carried out: what cannot be written down is not done. One that was refused has
    a second line, which says why.
    """

    def __init__(self, path: Path) -> None:
        """Use a file, which need not be there."""
        self._path = path

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
