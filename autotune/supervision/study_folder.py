"""The folder of one study in a service folder: its order, its processes, its status and its log."""

import json
import os
import stat
from pathlib import Path
from typing import Any, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from autotune.errors import StorageError
from autotune.supervision import shim
from autotune.supervision.desired_state import Order
from autotune.supervision.problems import BrokenOrderError
from autotune.supervision.reconcile import Ended
from spaces.parameters.problem import Problem

ORDER, STATUS = "order.json", "status.json"

_MOST_BYTES = 2**22
_LINE_BYTES = 400
_MARK = "--- "


class _Note(BaseModel):
    """A file that a shim wrote."""

    model_config = ConfigDict(frozen=True)

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a file; return None if it is missing or invalid."""
        try:
            return cls.model_validate_json(_content(path))
        except (OSError, ValueError):
            return None


class Process(_Note):
    """A start of a study.

    Attributes:
        token: Id of this start.
        serial: Serial of the order that it carries out.
        deaths: Number of starts before it without a result.
        when: Time of the start.
        warden: The shim, as its `shim.identity`.
        child: The study's process, as its `shim.identity`.
    """

    token: str
    serial: int
    deaths: int
    when: AwareDatetime
    warden: dict[str, Any] | None
    child: dict[str, Any] | None

    @property
    def target(self) -> dict[str, Any] | None:
        """The process to signal: the shim, which passes signals on, or else the study; None if neither is alive."""
        return next((member for member in (self.warden, self.child) if shim.lives(member)), None)


class End(_Note):
    """How the start with this token ended."""

    token: str
    code: int | None
    signal: int | None
    error: str

    @property
    def how(self) -> Ended:
        """The part of this end that a decision needs."""
        return Ended(self.code, self.signal, self.error)


class StudyFolder:
    """The files of one study. An unreadable file counts as missing, except the order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def known(self) -> bool:
        """Whether the study was ordered."""
        return os.path.lexists(self.path / ORDER)

    def order(self) -> Order:
        """Return the order of the study.

        Raises:
            BrokenOrderError: The file is not an order for this study; the message says why, and what to do.
        """
        path = self.path / ORDER
        try:
            order = Order.model_validate_json(_content(path))
        except OSError as error:
            why = error.strerror or str(error)
        except ValidationError as error:
            first = error.errors()[0]
            location = ".".join(map(str, first["loc"]))
            why = str(Problem(first["msg"], location))
        else:
            if order.name == self.path.name:
                return order
            why = f"it is for study {order.name!r}"
        msg = f"the order of study {self.path.name!r} cannot be read ({why}): delete the study, or order it again"
        raise BrokenOrderError(msg)

    def write_order(self, order: Order) -> None:
        """Store an order.

        Raises:
            StorageError: The order cannot be stored; the previous one still applies.
        """
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            shim.write_private(os.fspath(self.path / ORDER), order.model_dump(mode="json"))
        except OSError as error:
            msg = f"cannot store the order of study {order.name!r} in the service folder: {error.strerror}"
            raise StorageError(msg) from error

    def process(self) -> Process | None:
        """Return the newest start; None before the first."""
        return Process.read(self.path / shim.PROCESS)

    def end(self, process: Process) -> Ended | None:
        """Return how a start ended; None if no end was written."""
        end = End.read(self.path / shim.END)
        return end.how if end is not None and end.token == process.token else None

    def status(self) -> dict[str, Any]:
        """Return the status that the study wrote last; empty if it has written none."""
        try:
            status = json.loads(_content(self.path / STATUS))
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) else {}

    def log(self, lines: int) -> list[str]:
        """Return the last lines of the log."""
        tail = _tail(self.path / shim.LOG, lines)
        if len(tail) < lines:
            tail = [*_tail(self.path / shim.OLDER_LOG, lines - len(tail)), *tail]
        return tail

    def last_words(self, lines: int) -> list[str]:
        """Return the last lines that the newest process wrote."""
        said: list[str] = []
        for line in reversed(self.log(20 * lines)):
            if line.startswith(_MARK):
                if " started" in line:
                    break
            elif line.strip() and len(said) < lines:
                said.append(line.strip()[:_LINE_BYTES])
        return said[::-1]


def _content(path: Path) -> bytes:
    """Read a small file of this user.

    Raises:
        OSError: The file cannot be read, belongs to another user, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:  # noqa: PTH123  a descriptor
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "it is not a regular file")
        if status.st_uid != os.geteuid():
            raise OSError(0, "it belongs to somebody else")
        if status.st_size > _MOST_BYTES:
            raise OSError(0, "it is too long")
        return file.read(_MOST_BYTES)


def _tail(path: Path, lines: int) -> list[str]:
    if lines <= 0:
        return []
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            first = max(0, size - min(_MOST_BYTES, _LINE_BYTES * lines))
            file.seek(first)
            text = file.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return []
    tail = text.splitlines()
    return (tail[1:] if first else tail)[-lines:]
