"""A storage's SQLite file: readable for every user with permission, and complete when its writers have ended.

Others can read the file during a write, since new transactions first go to a log beside it (`-wal`, with an index,
`-shm`). To read such a file, SQLite must find or create both. In a read-only folder without a log, autotune therefore
opens the file as `immutable`. Its connections are short, so the next one notices a new writer.
"""

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from autotune.errors import StorageError
from autotune.locks import LockFile
from autotune.storage.sqlite.held_file import check_held, has_foreign_log

_READING = "PRAGMA query_only=ON"

_LOG, _INDEX = "-wal", "-shm"


def read_only(connection: sqlite3.Connection) -> None:
    """Let a new connection only read. With write permission, SQLite then still removes a leftover log."""
    connection.execute(_READING)


def sqlite_address(path: Path) -> str:
    """Return the address, `file:...`, for reading a file in a writable or a read-only folder.

    Raises:
        OSError: The file does not exist or cannot be read.
        StorageError: Part of its data is in a log that cannot be read here.
    """
    check_held(path)
    if has_foreign_log(path):
        return f"{_address(path, 'ro')}&immutable=1"
    if _can_write(path) and not _is_written_now(path):
        # Mode "rw", since the last connection removes the log and its index, and a read-only one would leave them.
        return _address(path, "rw")
    if all(_beside(path, suffix).exists() for suffix in (_LOG, _INDEX)) or not _has_log(path):
        return _address(path, "ro")
    log = _beside(path, _LOG)
    if log.exists():
        msg = (
            f"storage {path} cannot be read here: a crash has left its newest results in {log.name}, and the folder "
            "cannot be written; let its owner use any command on it (autotune storage list), or copy both files into a "
            "folder of yours, and name the copy by --storage"
        )
        raise StorageError(msg)
    return f"{_address(path, 'ro')}&immutable=1"


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


def _has_log(path: Path) -> bool:
    """Whether the file's header says that it uses a write-ahead log (https://www.sqlite.org/fileformat.html)."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _address(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"
