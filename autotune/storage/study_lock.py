"""The lock of a study: one coordinator at a time; how to wait for it, and how to take it over."""

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import NoReturn, Self

from autotune.errors import BusyError, StorageError
from autotune.lockfile import Holder, LockFile

LET_GO_S = 120.0
"""How long a holder that was asked to stop has for that: its runs in flight get some seconds, then they are killed."""
_POLL_S = 0.5
_GLANCES = 6
_SIGNING_S = 2.0
"""How long who has just locked the file may take to write its name into it, on a busy machine."""


class IfHeld(StrEnum):
    """What to do when somebody else holds the study."""

    LEAVE = "leave"
    WAIT = "wait"
    TAKE_OVER = "take over"


class StudyLock:
    """Held by the coordinator of a study; released by the system when the process ends, however it ends."""

    def __init__(self, file: LockFile) -> None:
        """Hold a locked file; use `acquire`."""
        self._file = file

    @classmethod
    def acquire(
        cls,
        path: Path,
        study: str,
        if_held: IfHeld = IfHeld.LEAVE,
        say: Callable[[str], None] = lambda _: None,
        let_go_s: float = LET_GO_S,
    ) -> Self:
        """Take the lock file `path` of `study`; tell `say` for whom this waits.

        Who is asked to stop has `let_go_s` seconds to store what ended and to let go.

        Raises:
            BusyError: another process works on the study, and did not let go; says which, and what to do.
            StorageError: the lock file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = LockFile.open(path, 0o644)
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror}; use --storage to keep the study elsewhere"
            raise StorageError(msg) from error
        try:
            if not _locked(file, path):
                match if_held:
                    case IfHeld.LEAVE:
                        _refuse(file, study)
                    case IfHeld.WAIT:
                        _wait(file, path, study, say)
                    case IfHeld.TAKE_OVER:
                        _take_over(file, path, study, say, let_go_s)
        except BaseException:  # Ctrl-C while it waits, too
            file.close()
            raise
        file.sign()
        return cls(file)

    def release(self) -> None:
        """Give the study up."""
        self._file.close()


def held_by_another(path: Path) -> str | None:
    """Return the process that holds a lock file, in words; None if it is free, or held by this process."""
    try:
        file = LockFile.open(path, create=False)
    except OSError:
        return None
    try:
        if _locked(file, path):
            return None
        holder = file.holder()
        own = holder is not None and (holder.pid, holder.host) == (os.getpid(), socket.gethostname())
        return None if own else str(holder or "another process")
    finally:
        file.close()


def works_here(path: Path) -> Holder | None:
    """Return the process of this host that holds a lock file, without taking it from whoever wants it now.

    None if nobody does, it is this process, or that cannot be seen: processes of other users do not show their files.
    """
    try:
        file = LockFile.open(path, create=False)
    except OSError:
        return None
    try:
        holder = file.holder()
        if holder is None or holder.host != socket.gethostname() or holder.pid == os.getpid():
            return None
        return holder if _has_open(holder.pid, file.stat()) else None
    except OSError:
        return None
    finally:
        file.close()


def _locked(file: LockFile, path: Path) -> bool:
    try:
        return file.lock()
    except OSError as error:
        msg = f"{path} cannot be locked ({error.strerror}); use --storage on a file system with locks"
        raise StorageError(msg) from error


def _holder(file: LockFile) -> Holder | None:
    """Return the holder of the file. A process locks it first and signs it then: this waits a moment for that."""
    deadline_s = time.monotonic() + _SIGNING_S
    while (holder := file.holder()) is None and time.monotonic() < deadline_s:
        time.sleep(_SIGNING_S / 100)
    return holder


def _refuse(file: LockFile, study: str) -> NoReturn:
    holder = _holder(file)
    elsewhere = holder is not None and holder.host != socket.gethostname()
    where = f" on {holder.host}" if holder and elsewhere else ""
    msg = (
        f"study {study!r} is being worked on by {holder or 'another process'}: wait for it with --wait, or stop it and "
        f"go on from what it has finished with --take-over{where}"
    )
    raise BusyError(msg)


def _wait(file: LockFile, path: Path, study: str, say: Callable[[str], None]) -> None:
    told: Holder | str | None = ""
    while not _locked(file, path):
        holder = _holder(file)
        if holder != told:
            say(f"study {study!r} is being worked on by {holder or 'another process'}: waiting for it (Ctrl-C leaves)")
            told = holder
        time.sleep(_POLL_S)


def _take_over(file: LockFile, path: Path, study: str, say: Callable[[str], None], let_go_s: float) -> None:
    """Ask the process that holds the lock to stop, and wait until it is free."""
    asked: Holder | None = None
    deadline_s, glances = 0.0, 0
    while not _locked(file, path):
        holder = file.holder()
        if holder is not None and holder == asked:
            if time.monotonic() > deadline_s:
                msg = (
                    f"{holder} was asked to stop and still holds study {study!r} after {let_go_s:g} s: look what keeps "
                    f"it, or end it with `kill -9 {holder.pid}` (what it has finished stays, its runs in flight are "
                    "lost), then use the same command again"
                )
                raise BusyError(msg)
        elif holder is not None and _asked_to_stop(holder, file.stat(), study):
            asked, deadline_s = holder, time.monotonic() + let_go_s
            say(f"asked {holder} to stop; waiting until it has stored what ended and lets go of study {study!r}")
        else:
            # It may have ended this moment, or may be just writing its name.
            glances += 1
            if glances == _GLANCES:
                msg = (
                    f"study {study!r} is being worked on, but not by {holder or 'whoever wrote'} in {path}: find out "
                    f"who has that file open (`fuser -v {path}`, on every host and in every container that shares it), "
                    "stop that, and use the same command again; or use --wait"
                )
                raise BusyError(msg)
        time.sleep(_POLL_S)


def _asked_to_stop(holder: Holder, lock: os.stat_result, study: str) -> bool:
    """Send SIGTERM to the process of that number; False if it is not the one that has the lock file open.

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
            if not _has_open(holder.pid, lock):
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


def _has_open(pid: int, lock: os.stat_result) -> bool:
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found = entry.stat()
            if (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino):
                return True
    return False
