"""A storage's SQLite file: readable for every user with permission, and complete when its writers have ended.

Others can read the file during a write, since new transactions first go to a log beside it (`-wal`, with an index,
`-shm`). To read such a file, SQLite must find or create both. In a read-only folder without a log, autotune therefore
opens the file as `immutable`. Its connections are short, so the next one notices a new writer.
"""

import atexit
import os
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import quote
from weakref import WeakSet

from autotune.errors import StorageError

READING = "PRAGMA query_only=ON"
"""The first statement of a reading connection. With write permission, SQLite then still removes a leftover log."""

_LOG, _INDEX = "-wal", "-shm"
_BUSY_TIMEOUT_S = 5.0


class Connections(Protocol):
    """An SQLAlchemy engine; a protocol, because SQLAlchemy takes long to import."""

    def dispose(self) -> None:
        """Close its connections."""


_writing: WeakSet[Connections] = WeakSet()


def sqlite_address(path: Path) -> str:
    """Return the address, `file:...`, for reading a file in a writable or a read-only folder.

    Raises:
        OSError: The file does not exist or cannot be read.
        StorageError: Part of its data is in a log that cannot be read here.
    """
    if _can_write(path):
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


def merge_log_at_exit(path: Path) -> None:
    """Merge the log into the file when this process ends, so that a copy of the file is complete."""
    _at_exit(path.absolute())


def close_at_exit(engine: Connections) -> None:
    """Close the connections of a writing engine when this process ends."""
    _writing.add(engine)


@cache
def _at_exit(path: Path) -> None:
    atexit.register(_merge_log, path)


def _merge_log(path: Path) -> None:
    for engine in tuple(_writing):
        engine.dispose()
    # If a reader still uses the log, the last connection to close merges it. A missing file needs nothing.
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(_address(path, "rw"), uri=True, timeout=_BUSY_TIMEOUT_S)) as connection,
    ):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _can_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _has_log(path: Path) -> bool:
    """Whether the file's header says that it uses a write-ahead log (https://www.sqlite.org/fileformat.html)."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _address(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"
