"""The lock of a study: one session at a time; how to wait for it, and how to take it over."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, Self

from autotune.errors import BusyError, StorageError
from autotune.locks import Holder, IfHeld, LockFile, has_open, lock, other_holder
from autotune.storage.address import lock_path, sqlite_path

if TYPE_CHECKING:
    from sqlalchemy import Connection

STOP_TIMEOUT_S = 120.0
"""How long a holder that was asked to stop has for that: its runs in flight get some seconds, then they are killed."""
_POLL_S = 0.5
_UNCLEAR_LOOKS = 6
_SIGNING_S = 2.0
"""How long who has just locked the file may take to write its name into it, on a busy machine."""


class _Backend(Protocol):
    """What the session of a study holds: a lock file, or a row on a server."""

    def lock(self) -> bool:
        """Take it; False if another session has it."""

    def sign(self) -> None:
        """Name this process as its holder."""

    def holder(self) -> Holder | None:
        """Return who has it, as far as that is written yet."""

    def is_held_by(self, pid: int) -> bool:
        """Whether this process of this host has it."""

    def describe_unclear(self, holder: Holder | None) -> str:
        """Say who works on the study, and what to do, where that cannot be asked to stop."""

    def fence(self, connection: "Connection") -> None:
        """Check within a transaction that it is still held."""

    def check(self) -> None:
        """Check that it is still held."""

    def close(self) -> None:
        """Give it up."""


class _FileBackend:
    """The lock file of a study in a SQLite file; the system releases it when the process ends, however it ends."""

    def __init__(self, path: Path) -> None:
        """Open the lock file at `path`.

        Raises:
            StorageError: it cannot be written.
        """
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = LockFile.open(path, 0o644)
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror}; use --storage to keep the study elsewhere"
            raise StorageError(msg) from error
        self.sign, self.holder, self.close = self._file.sign, self._file.holder, self._file.close

    def lock(self) -> bool:
        """Lock it.

        Raises:
            StorageError: its file system has no locks.
        """
        return lock(self._file, self._path)

    def is_held_by(self, pid: int) -> bool:
        """Whether a process of this host has the file open."""
        return has_open(pid, self._file.stat())

    def describe_unclear(self, holder: Holder | None) -> str:
        """Say how to find who has the file open."""
        return (
            f"but not by {holder or 'whoever wrote'} in {self._path}: find out who has that file open (`fuser -v "
            f"{self._path}`, on every host and in every container that shares it), stop that, and use the same command "
            "again; or use --wait"
        )

    def fence(self, connection: "Connection") -> None:
        """Do nothing: nobody can take a locked file."""

    def check(self) -> None:
        """Do nothing: nobody can take a locked file."""


class StudyLock:
    """Held by the session of a study: there is one at a time."""

    def __init__(self, backend: _Backend) -> None:
        """Hold a seat that is taken; use `acquire`."""
        self._backend = backend
        self.fence = backend.fence
        self.check = backend.check

    @classmethod
    def acquire(
        cls,
        url: str,
        study: str,
        if_held: IfHeld = IfHeld.LEAVE,
        say: Callable[[str], None] = lambda _: None,
        stop_timeout_s: float = STOP_TIMEOUT_S,
    ) -> Self:
        """Hold the `study` of a storage; tell `say` for whom this waits.

        Who is asked to stop has `stop_timeout_s` seconds to store what ended and to let go.

        Raises:
            BusyError: another process works on the study, and did not let go; says which, and what to do.
            StorageError: the lock file cannot be written, or the server cannot be used.
        """
        backend = _open_backend(url, study)
        try:
            if not backend.lock():
                match if_held:
                    case IfHeld.LEAVE:
                        _refuse(backend, study)
                    case IfHeld.WAIT:
                        _wait(backend, study, say)
                    case IfHeld.TAKE_OVER:
                        _take_over(backend, study, say, stop_timeout_s)
        except BaseException:  # Ctrl-C while it waits, too
            backend.close()
            raise
        backend.sign()
        return cls(backend)

    @classmethod
    @contextmanager
    def hold(
        cls, url: str, study: str, if_held: IfHeld = IfHeld.LEAVE, say: Callable[[str], None] = lambda _: None
    ) -> Iterator[Self]:
        """Hold a study while the context lasts, as `acquire` does."""
        lock = cls.acquire(url, study, if_held, say)
        try:
            yield lock
        finally:
            lock.release()

    def release(self) -> None:
        """Give the study up."""
        self._backend.close()


def _open_backend(url: str, study: str) -> _Backend:
    if sqlite_path(url) is not None:
        return _FileBackend(lock_path(url, study))
    from autotune.storage.session_lease import SessionLease  # noqa: PLC0415  it imports SQLAlchemy and Optuna

    return SessionLease(url, study)


def study_holder(url: str, study: str) -> str | None:
    """Return the process that works on a study, in words; None if nobody does, or it is this process."""
    if sqlite_path(url) is not None:
        return other_holder(lock_path(url, study))
    backend = _open_backend(url, study)
    try:
        holder = backend.holder()
    finally:
        backend.close()
    return None if holder is None or holder.is_here else str(holder)


def _holder(backend: _Backend) -> Holder | None:
    """Return the holder. A process locks a file first and signs it then: this waits a moment for that."""
    deadline_s = time.monotonic() + _SIGNING_S
    while (holder := backend.holder()) is None and time.monotonic() < deadline_s:
        time.sleep(_SIGNING_S / 100)
    return holder


def _refuse(backend: _Backend, study: str) -> NoReturn:
    holder = _holder(backend)
    elsewhere = holder is not None and holder.host != socket.gethostname()
    where = f" on {holder.host}" if holder and elsewhere else ""
    msg = (
        f"study {study!r} is being worked on by {holder or 'another process'}: wait for it with --wait, or stop it and "
        f"go on from what it has finished with --take-over{where}"
    )
    raise BusyError(msg)


def _wait(backend: _Backend, study: str, say: Callable[[str], None]) -> None:
    told: Holder | str | None = ""
    while not backend.lock():
        holder = _holder(backend)
        if holder != told:
            say(f"study {study!r} is being worked on by {holder or 'another process'}: waiting for it (Ctrl-C leaves)")
            told = holder
        time.sleep(_POLL_S)


def _take_over(backend: _Backend, study: str, say: Callable[[str], None], stop_timeout_s: float) -> None:
    """Ask the process that holds the study to stop, and wait until it is free."""
    asked: Holder | None = None
    deadline_s, unclear_looks = 0.0, 0
    while not backend.lock():
        holder = backend.holder()
        if holder is not None and holder == asked:
            if time.monotonic() > deadline_s:
                msg = (
                    f"{holder} was asked to stop and still holds study {study!r} after {stop_timeout_s:g} s: look what keeps "
                    f"it, or end it with `kill -9 {holder.pid}` (what it has finished stays, its runs in flight are "
                    "lost), then use the same command again"
                )
                raise BusyError(msg)
        elif holder is not None and _ask_to_stop(holder, backend, study):
            asked, deadline_s = holder, time.monotonic() + stop_timeout_s
            say(f"asked {holder} to stop; waiting until it has stored what ended and lets go of study {study!r}")
        else:
            # It may have ended this moment, or may be just writing its name.
            unclear_looks += 1
            if unclear_looks == _UNCLEAR_LOOKS:
                msg = f"study {study!r} is being worked on, {backend.describe_unclear(holder)}"
                raise BusyError(msg)
        time.sleep(_POLL_S)


def _ask_to_stop(holder: Holder, backend: _Backend, study: str) -> bool:
    """Send SIGTERM to the process of that number; False if it is not the one that holds the study.

    Raises:
        BusyError: it cannot be asked from here: it is on another host, or another user's.
    """
    if holder.host != socket.gethostname():
        msg = (
            f"study {study!r} is being worked on by {holder}, which cannot be asked from {socket.gethostname()}: on "
            f"{holder.host} use the same command with --take-over, or `kill {holder.pid}`; here, --wait goes on then"
        )
        raise BusyError(msg)
    with _process(holder.pid) as process:
        if process is None:
            return False
        try:
            if os.geteuid() not in {0, Path(f"/proc/{holder.pid}").stat().st_uid}:
                msg = (
                    f"study {study!r} is being worked on by {holder}, of another user: ask them to stop it; "
                    "--wait goes on then"
                )
                raise BusyError(msg)
            # By now the number may be that of another process; as long as `process` is open it stays the same.
            if not backend.is_held_by(holder.pid):
                return False
            signal.pidfd_send_signal(process, signal.SIGTERM)
        except (ProcessLookupError, FileNotFoundError):
            return False
    return True


@contextmanager
def _process(pid: int) -> Iterator[int | None]:
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
