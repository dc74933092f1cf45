"""The lock of a study, which allows one session at a time; waiting for it, and taking it over."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol, Self

from autotune.errors import BusyError, StorageError
from autotune.files import make_private_folder, private_mode
from autotune.locks import Holder, IfHeld, LockFile, has_open, lock, other_holder
from autotune.storage.address import lock_path, sqlite_path
from autotune.storage.sqlite.held_file import check_held, session_on

if TYPE_CHECKING:
    from sqlalchemy import Connection

STOP_TIMEOUT_S = 120.0
"""How long a holder may take to stop, in seconds: its runs in flight get some seconds, then it kills them."""
_POLL_S = 0.5
_UNCLEAR_LOOKS = 6
_SIGNING_S = 2.0
"""How long a process on a busy machine may take to sign a lock file that it has locked, in seconds."""


class _Backend(Protocol):
    """The means of locking a study: a lock file, or a row on a server."""

    def lock(self) -> bool:
        """Take the lock; return False if another session holds it."""

    def sign(self) -> None:
        """Write that this process is the holder."""

    def holder(self) -> Holder | None:
        """Return the holder; None if it has not signed yet."""

    def is_held_by(self, pid: int) -> bool:
        """Whether this process of this host holds the lock."""

    def describe_unclear(self, holder: Holder | None) -> str:
        """Return who holds the study, and what to do, if this process cannot ask the holder to stop."""

    def fence(self, connection: "Connection") -> None:
        """Check inside a transaction that this session still holds the lock."""

    def renew(self) -> None:
        """Check now that this session still holds the lock."""

    def check(self) -> None:
        """Check that this session still holds the lock."""

    def close(self) -> None:
        """Release the lock."""


class _FileBackend:
    """The lock file of a study in a SQLite file; the system releases it with the process, however that ends."""

    def __init__(self, path: Path, storage: Path) -> None:
        """Open the lock file at `path` for a study in the file `storage`.

        Raises:
            StorageError: The file cannot be written.
        """
        self._path, self._storage = path, storage
        self._session = ExitStack()
        try:
            make_private_folder(path.parent)
            self._file = LockFile.open(path, private_mode(path.parent))
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror}; use --storage to keep the study elsewhere"
            raise StorageError(msg) from error
        self.sign, self.holder = self._file.sign, self._file.holder

    def lock(self) -> bool:
        """Lock the file; return False if another process holds it.

        Raises:
            StorageError: The file system has no locks.
        """
        locked = lock(self._file, self._path)
        if locked:
            self._session.enter_context(session_on(self._storage))
        return locked

    def is_held_by(self, pid: int) -> bool:
        """Whether a process of this host has the file open."""
        return has_open(pid, self._file.stat())

    def describe_unclear(self, holder: Holder | None) -> str:
        """Return how to find the process that has the file open."""
        return (
            f"but not by {holder or 'whoever wrote'} in {self._path}: find out who has that file open (`fuser -v "
            f"{self._path}`, on every host and in every container that shares it), stop that, and use the same command "
            "again; or use --wait"
        )

    def fence(self, connection: "Connection") -> None:
        """Do nothing: a process cannot lose a locked file."""

    def renew(self) -> None:
        """Do nothing: a process cannot lose a locked file."""

    def check(self) -> None:
        """Check that the storage is still the file that this session writes.

        Raises:
            StorageError: It was moved, removed, replaced or truncated.
        """
        check_held(self._storage)

    def close(self) -> None:
        """Release the lock."""
        self._session.close()
        self._file.close()


class StudyLock:
    """The lock that a session holds on its study."""

    def __init__(self, backend: _Backend) -> None:
        """Wrap a backend that this process has locked; use `acquire`."""
        self._backend = backend
        self.fence = backend.fence
        self.renew = backend.renew
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
        """Lock a study for this process.

        Args:
            url: The address of the storage.
            study: The name of the study.
            if_held: What to do if another process holds the study.
            say: Gets messages about waiting.
            stop_timeout_s: The time that a holder has to stop when it is taken over, in seconds.

        Raises:
            BusyError: Another process holds the study and did not release it; the message names it and the remedy.
            StorageError: The lock file cannot be written, or the server cannot be used.
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
        """Lock a study while the context lasts; the arguments are those of `acquire`."""
        lock = cls.acquire(url, study, if_held, say)
        try:
            yield lock
        finally:
            lock.release()

    def release(self) -> None:
        """Release the study."""
        self._backend.close()


def _open_backend(url: str, study: str) -> _Backend:
    storage = sqlite_path(url)
    if storage is not None:
        return _FileBackend(lock_path(url, study), storage)
    from autotune.storage.server_lock import ServerLock  # noqa: PLC0415  it imports SQLAlchemy and Optuna

    return ServerLock(url, study)


def study_holder(url: str, study: str) -> str | None:
    """Return the other process that holds a study, in words; None if no other process does."""
    if sqlite_path(url) is not None:
        return other_holder(lock_path(url, study))
    backend = _open_backend(url, study)
    try:
        holder = backend.holder()
    finally:
        backend.close()
    return None if holder is None or holder.is_here else str(holder)


def _holder(backend: _Backend) -> Holder | None:
    """Return the holder; wait a moment if it has locked the file but not signed it yet."""
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
        f"continue from what it has finished with --take-over{where}"
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
    """Ask the process that holds the study to stop, and wait until it has released it."""
    asked: Holder | None = None
    deadline_s, unclear_looks = 0.0, 0
    while not backend.lock():
        holder = backend.holder()
        if holder is not None and holder == asked:
            if time.monotonic() > deadline_s:
                msg = (
                    f"{holder} was asked to stop and still holds study {study!r} after {stop_timeout_s:g} s: look what "
                    f"keeps it, or end it with `kill -9 {holder.pid}` (what it has finished stays, its runs in flight "
                    "are lost), then use the same command again"
                )
                raise BusyError(msg)
        elif holder is not None and _ask_to_stop(holder, backend, study):
            asked, deadline_s = holder, time.monotonic() + stop_timeout_s
            say(f"asked {holder} to stop; waiting until it has stored what ended and lets go of study {study!r}")
        else:
            # The holder may have just ended, or may be signing the file.
            unclear_looks += 1
            if unclear_looks == _UNCLEAR_LOOKS:
                msg = f"study {study!r} is being worked on, {backend.describe_unclear(holder)}"
                raise BusyError(msg)
        time.sleep(_POLL_S)


def _ask_to_stop(holder: Holder, backend: _Backend, study: str) -> bool:
    """Send SIGTERM to a holder; return False if the process with its number does not hold the study.

    Raises:
        BusyError: The holder is on another host, or belongs to another user.
    """
    if holder.host != socket.gethostname():
        msg = (
            f"study {study!r} is being worked on by {holder}, which cannot be asked from {socket.gethostname()}: on "
            f"{holder.host} use the same command with --take-over, or `kill {holder.pid}`; then --wait continues here"
        )
        raise BusyError(msg)
    with _process(holder.pid) as process:
        if process is None:
            return False
        try:
            if os.geteuid() not in {0, Path(f"/proc/{holder.pid}").stat().st_uid}:
                msg = (
                    f"study {study!r} is being worked on by {holder}, of another user: ask them to stop it; "
                    "then --wait continues"
                )
                raise BusyError(msg)
            # The number may have been reused. While `process` is open it cannot change, so check only now.
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
