"""A storage's SQLite file: readable for every user with permission, and complete when its writers have ended.

Others can read the file during a write, since new transactions first go to a log beside it (`-wal`, with an index,
`-shm`). To read such a file, SQLite must find or create both. In a read-only folder without a log, autotune therefore
opens the file as `immutable`. Its connections are short, so the next one notices a new writer.
"""

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from autotune.errors import StorageError
from autotune.locks import LockFile
from autotune.storage.sqlite.held_file import CautiousConnection, check_held, has_foreign_log

_LOG, _INDEX = "-wal", "-shm"
_TRIES, _PAUSE_S = 300, 0.01


def connect_reader(path: Path, timeout_s: float) -> sqlite3.Connection:
    """Return a connection that only reads a file, in a writable or a read-only folder.

    Args:
        path: The file.
        timeout_s: The longest time to wait for another process to unlock it, in seconds.

    Raises:
        OSError: The file does not exist or cannot be read.
        sqlite3.Error: It is no SQLite file, or stays locked.
        StorageError: Part of its data is in a log that cannot be read here.
    """
    while True:
        before = _log_files(path)
        try:
            return _connect(_address_for_reading(path), timeout_s)
        except sqlite3.OperationalError as error:
            # The last writer to end removes the log and its index, perhaps while they are opened here.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_CANTOPEN or _log_files(path) == before:
                raise


def _connect(address: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(
        address, uri=True, timeout=timeout_s, check_same_thread=False, factory=CautiousConnection
    )
    try:
        # With write permission, SQLite then still removes a leftover log.
        connection.execute("PRAGMA query_only=ON")
        # The first statement that reads opens the log; from then on, it stays.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _address_for_reading(path: Path) -> str:
    check_held(path)
    for _ in range(_TRIES):
        if has_foreign_log(path):
            return f"{_address(path, 'ro')}&immutable=1"
        if _can_write(path) and not _is_written_now(path):
            # Mode "rw", since the last connection removes the log and its index, and a read-only one would leave them.
            return _address(path, "rw")
        files = _log_files(path)
        if len(files) == 2 or not _has_log(path):
            return _address(path, "ro")
        if _LOG not in files:
            return f"{_address(path, 'ro')}&immutable=1"
        # SQLite creates the log before its index, and removes it after: a writer begins or ends just now.
        time.sleep(_PAUSE_S)
    log, index = (_beside(path, suffix).name for suffix in (_LOG, _INDEX))
    msg = (
        f"storage {path} cannot be read here: a crash or a copy has left its newest results in {log} without {index}, "
        "which cannot be made here; let its owner use any command on it (autotune storage list), or copy both files "
        "into a folder of yours, and name the copy by --storage"
    )
    raise StorageError(msg)


def check_writable(path: Path) -> None:
    """Refuse a storage that cannot be written, before anything starts.

    Raises:
        StorageError: The file or its folder cannot be written; the message says what is still possible.
    """
    if not path.exists() or _can_write(path):
        return
    what = path if os.access(path.parent, os.W_OK) else f"the folder {path.absolute().parent}"
    msg = (
        f"storage {path} cannot be written: {what} is read-only, or not yours; it can be read (best, trials, "
        f"report, predict ...). To continue its studies, copy it, and name the copy: `autotune storage merge {path} "
        "--into mine.db`, then --storage mine.db"
    )
    raise StorageError(msg)


def _can_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _is_written_now(path: Path) -> bool:
    """Whether a process holds the file (`HeldFile`), and has its newest data in the log.

    If the file was just replaced, a writable reader would merge the log of the former file into the new one.
    """
    log = _beside(path, _LOG)
    try:
        file = LockFile.open(log, create=False)
    except OSError:
        return log.exists()
    try:
        return bool(file.stat().st_size) and not file.lock()
    finally:
        file.close()


def _log_files(path: Path) -> dict[str, int]:
    """Return which of the log and its index exist, with their inodes."""
    found = {}
    for suffix in (_LOG, _INDEX):
        with suppress(FileNotFoundError):
            found[suffix] = _beside(path, suffix).stat().st_ino
    return found


def _has_log(path: Path) -> bool:
    """Whether the file's header says that it uses a write-ahead log (https://www.sqlite.org/fileformat.html)."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _address(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"
