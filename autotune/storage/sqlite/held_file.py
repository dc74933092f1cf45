"""A SQLite file that this process writes: if it is removed, replaced or truncated, nothing more is written.

SQLite finds the log of a file (`-wal`) by its name. If another file takes the name, the log that a running session
left would be merged into that file, and destroy it. So each transaction, each beat of a session and the end of the
process first compare the file at the path with the open one. On a difference the log is merged into the open file, and
what is stored there is copied to a new file. Other processes, also after a kill, learn from a note beside the file
(`-held`) which file the log belongs to.
"""

import atexit
import os
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote
from weakref import WeakSet, WeakValueDictionary, finalize

from autotune.errors import StorageError
from autotune.files import private_mode
from autotune.locks import LockFile

_BUSY_TIMEOUT_S = 5.0
_LOCK_TRIES, _LOCK_PAUSE_S = 50, 0.002
_REMOVED_SOON = (".nfs", ".fuse_hidden")
"""NFS and FUSE rename a removed file that is open, and remove it when it is closed."""
_DESCRIPTORS = Path("/proc/self/fd")
_LOG, _NOTE = "-wal", "-held"
_LONGEST_NOTE = 100
_PLAIN_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""In a folder where others can write, a pipe or a link may have the name."""


class CautiousConnection(sqlite3.Connection):
    """A connection that trusts the content of a file no more than needed, from its first statement on."""

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401  as `sqlite3.connect` has them
        """Connect as `sqlite3.connect`, which takes this class as its `factory`."""
        super().__init__(*arguments, **options)
        # The file may be a stranger's, or damaged: its views and triggers call no function with effects.
        for statement in ("PRAGMA trusted_schema=OFF", "PRAGMA cell_size_check=ON"):
            self.execute(statement)


class Connections(Protocol):
    """An SQLAlchemy engine; a protocol, because SQLAlchemy takes long to import."""

    def dispose(self) -> None:
        """Close its connections."""


class HeldFile:
    """A file that this process has open for writing, with a connection that stays open for rescuing its content."""

    def __init__(self, path: Path, timeout_s: float) -> None:
        """Open the file at an absolute path; create it if it is missing, readable for its user only.

        Raises:
            OSError: The file cannot be created.
            sqlite3.Error: It cannot be opened.
        """
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, private_mode(path.parent)))
        _set_aside_foreign_log(path)
        self.path = path
        self.connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=rw",
            uri=True,
            timeout=timeout_s,
            check_same_thread=False,
            factory=CautiousConnection,
        )
        self._log_locks: list[LockFile] = []
        finalize(self, _close, path, self.connection, self._log_locks).atexit = False
        found = path.stat()
        self._identity, self._size, self._mode = (found.st_dev, found.st_ino), found.st_size, found.st_mode & 0o777
        self._engines: WeakSet[Connections] = WeakSet()
        self._lock = threading.Lock()
        self._lost = ""
        self._copied: tuple[int, int] | None = None
        self._is_retired = False
        self.in_session = False

    def used_by(self, engine: Connections) -> None:
        """Close the connections of an engine when this process ends."""
        self._engines.add(engine)

    def open_log(self) -> None:
        """Open the log, since its name may later lead to that of another file; lock it, so that readers leave it."""
        self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not self._log_locks:
            with suppress(FileNotFoundError):  # a rollback journal
                self._log_locks.append(LockFile.open(_beside(self.path, _LOG), create=False))
                for _ in range(_LOCK_TRIES):
                    if self._log_locks[0].lock(shared=True):
                        break
                    time.sleep(_LOCK_PAUSE_S)  # a reader asks just now whether the log is locked
                with suppress(OSError):
                    _write_note(self.path, self._identity[1], self._log_locks[0].stat().st_ino)

    def check(self, *_: object) -> None:
        """Check that the file at the path is still this one, and whole; also a listener of SQLAlchemy's events.

        Raises:
            StorageError: It was moved, removed, replaced or truncated; the message says where its content is.
        """
        with self._lock:
            if not self._lost and (now := self._find()) is not None:
                is_whole = now.st_size >= self._size or self._is_whole()
                if is_whole is False:
                    self._lost = self._describe_truncated(now.st_size)
                if is_whole is not None:
                    self._size = now.st_size
            elif not self._lost:
                self._lost = self._rescue()
            if self._lost:
                if not self._is_retired:
                    _lost[self.path] = self
                raise StorageError(self._lost)

    @property
    def is_there(self) -> bool:
        """Whether the file at the path is this one."""
        return not self._lost and self._find() is not None

    @property
    def is_back(self) -> bool:
        """Whether the file was lost, and is at the path again, itself or as the copy that was made of it."""
        with suppress(OSError):
            now = self.path.stat()
            return bool(self._lost) and (now.st_dev, now.st_ino) in {self._identity, self._copied}
        return False

    def retire(self) -> None:
        """Close a file that is no longer at its path, which no session uses; engines that remain then refuse it."""
        with self._lock:
            self._is_retired = True
            self._lost = self._lost or (
                f"storage {self.path} was removed or replaced after this process had opened it: use the same command "
                "again (start `autotune serve` again)"
            )
        self.close()

    def close(self) -> None:
        """Merge the log into the file, so that a copy of it is complete, and close the connections to it."""
        for engine in tuple(self._engines):
            engine.dispose()
        self._merge_log()
        self.connection.close()
        _release(self.path, self._log_locks)

    def _find(self) -> os.stat_result | None:
        """Return the status of the file at the path; None if this file is no longer there."""
        try:
            now = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:  # a network file system that does not answer
            msg = f"storage {self.path} cannot be found now: {error.strerror}; mend it and use the same command again"
            raise StorageError(msg) from error
        return now if (now.st_dev, now.st_ino) == self._identity else None

    def _merge_log(self) -> bool:
        """Merge the log into the file, so that it is complete; return False if a reader uses the log now."""
        with suppress(sqlite3.Error):
            self.connection.execute(f"PRAGMA busy_timeout={int(1000 * _BUSY_TIMEOUT_S)}")
            (busy, *_) = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
        return False

    def _is_whole(self) -> bool | None:
        """Whether a smaller file is whole, as after VACUUM; None while another process keeps it locked."""
        try:
            (state,) = self.connection.execute("PRAGMA quick_check(1)").fetchone()
            self.connection.execute("SELECT 1 FROM studies")
        except sqlite3.Error as error:
            is_locked = getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
            return None if is_locked else False
        return bool(state == "ok")

    def _describe_truncated(self, size: int) -> str:
        return (
            f"storage {self.path} was truncated by another program while it was in use, from {self._size} to {size} "
            "bytes: nothing more is written to it; restore it from a backup, then use the same command again. What the "
            "runs printed is in their folders"
        )

    def _rescue(self) -> str:
        """Save the content of a file that is no longer at its path; return the message for the user."""
        moved = self._moved_to()
        is_complete = self._merge_log()
        done = "replaced by another file" if self.path.exists() else "removed"
        head = f"storage {self.path} was {done} while it was in use: nothing more is written"
        again = "or name it by --storage; then use the same command again"
        if moved is not None and is_complete:
            return f"{head}; it is complete in {moved}: move it back to {self.path}, {again}"
        try:
            copy = self._copy()
        except (OSError, sqlite3.Error) as error:
            return f"{head}, and its content could not be copied to a new file ({error}); restore it from a backup"
        return f"{head}; everything that was stored is in {copy}: move that to {self.path}, {again}"

    def _copy(self) -> Path:
        for number in count(1):
            ending = f"-{number}" if number > 1 else ""
            copy = self.path.with_name(f"{self.path.stem}-rescued{ending}{self.path.suffix}")
            with suppress(FileExistsError):
                os.close(os.open(copy, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, self._mode))
                break
        try:
            with closing(sqlite3.connect(copy)) as target:
                self.connection.backup(target)
        except sqlite3.Error:
            copy.unlink(missing_ok=True)
            raise
        found = copy.stat()
        self._copied = (found.st_dev, found.st_ino)
        return copy

    def _moved_to(self) -> Path | None:
        """Return the new path of a file that was moved; None if it was removed."""
        with suppress(OSError):
            for descriptor in _DESCRIPTORS.iterdir():
                with suppress(OSError):
                    path = descriptor.readlink()
                    if path.name.startswith(_REMOVED_SOON):
                        continue
                    found = path.stat()
                    if (found.st_dev, found.st_ino) == self._identity:
                        return path
        return None


def _write_note(path: Path, file: int, log: int) -> None:
    """Note which file a log belongs to, by their inodes."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _PLAIN_FILE
    descriptor = os.open(_beside(path, _NOTE), flags, private_mode(path.parent))
    try:
        os.write(descriptor, f"{file} {log}\n".encode("ascii"))
    finally:
        os.close(descriptor)


def has_foreign_log(path: Path) -> bool:
    """Whether the log beside a file belongs to a file that was at its path before."""
    with suppress(OSError, ValueError):
        descriptor = os.open(_beside(path, _NOTE), os.O_RDONLY | _PLAIN_FILE)
        try:
            file, log = map(int, os.read(descriptor, _LONGEST_NOTE).split())
        finally:
            os.close(descriptor)
        return _beside(path, _LOG).stat().st_ino == log and path.stat().st_ino != file
    return False


def _set_aside_foreign_log(path: Path) -> None:
    """Rename the log of a former file, which SQLite would merge into this one.

    Raises:
        OSError: It cannot be renamed.
        StorageError: A process still has the former file open.
    """
    if not has_foreign_log(path):
        return
    log = _beside(path, _LOG)
    names = (_beside(path, f"{_LOG}-of-former-file{f'-{number}' if number > 1 else ''}") for number in count(1))
    former = next(name for name in names if not name.exists())
    lock = LockFile.open(log, create=False)
    try:
        if not lock.lock():
            msg = (
                f"storage {path} was replaced while another process had the former file open: stop that process "
                f"(`fuser -v {log}` names it; `autotune serve`?), then use the same command again"
            )
            raise StorageError(msg)
        if not lock.stat().st_size:
            return
        log.replace(former)
        _beside(path, "-shm").unlink(missing_ok=True)
    finally:
        lock.close()
    sys.stderr.write(
        f"storage {path} was replaced after a process that wrote it had been killed: the newest results of the former "
        f"file are not in this one, but in {former}\n"
    )


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _close(path: Path, connection: sqlite3.Connection, locks: list[LockFile]) -> None:
    """Close the connection of a file whose engines are gone; do not wait for readers, who would stop this process."""
    with closing(connection), suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    _release(path, locks)


def _release(path: Path, locks: list[LockFile]) -> None:
    while locks:
        locks.pop().close()
    with suppress(OSError):
        if not _beside(path, _LOG).exists():
            _beside(path, _NOTE).unlink(missing_ok=True)


_held: WeakValueDictionary[Path, HeldFile] = WeakValueDictionary()
_lost: dict[Path, HeldFile] = {}  # kept, so that no later session of this process writes to another file by mistake
_sessions: Counter[Path] = Counter()


def hold_file(path: Path, timeout_s: float) -> HeldFile:
    """Return the file at `path` as this process holds it; open or create it if needed."""
    path = path.absolute()
    check_held(path)
    held = _held.get(path)
    if held is None:
        held = _held[path] = HeldFile(path, timeout_s)
    held.in_session = _sessions[path] > 0
    return held


def check_held(path: Path) -> None:
    """Check that the file at `path` is the one that this process writes, if it writes one.

    Raises:
        StorageError: A session of this process writes another file.
    """
    path = path.absolute()
    held = _held.get(path)
    if held is None:
        return
    if held.in_session or (path in _lost and not held.is_back):
        held.check()
    elif not held.is_there:
        # A session that has ended wrote the former file; a user may replace it before the next one.
        _held.pop(path, None)
        _lost.pop(path, None)
        held.retire()


def discard_file(path: Path) -> None:
    """Close and remove a file that this process has made in vain, with its log.

    Raises:
        OSError: It cannot be removed.
    """
    held = _held.pop(path.absolute(), None)
    if held is not None:
        held.close()
    for suffix in ("", _LOG, "-shm", _NOTE):
        _beside(path, suffix).unlink(missing_ok=True)


@contextmanager
def session_on(path: Path) -> Iterator[None]:
    """Say that a session uses the file at `path` while the context lasts."""
    path = path.absolute()
    _sessions[path] += 1
    try:
        yield
    finally:
        _sessions[path] -= 1
        if not _sessions[path] and path in _held:
            _held[path].in_session = False


@atexit.register
def close_held_files() -> None:
    """Make all files that this process writes complete; `os._exit` needs it, since it skips the exit handlers."""
    for held in tuple(_held.values()):
        held.close()
