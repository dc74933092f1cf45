"""A storage's SQLite file: read by anybody who may read it, and whole when a process that wrote it has ended.

Others read a file while it is written, since new transactions first go to a log beside it (`-wal`, with an index,
`-shm`). SQLite can read such a file only where it can make both, or where they are there. In a folder that cannot be
written it reads a file without a log as one that does not change (`immutable`); each connection is a short one, so
whoever begins to write is noticed by the next.
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
"""What a connection for reading begins with: where it may write, it only tidies up what others left beside the file."""

_LOG, _INDEX = "-wal", "-shm"
_BUSY_TIMEOUT_S = 5.0


class Connections(Protocol):
    """An engine of SQLAlchemy, which takes long to import."""

    def dispose(self) -> None:
        """Close its connections."""


_writing: WeakSet[Connections] = WeakSet()


def sqlite_address(path: Path) -> str:
    """Return the address, `file:...`, by which a file is read, wherever it lies.

    Raises:
        OSError: there is no such file, or it cannot be read.
        StorageError: a part of it is in a log that cannot be read here.
    """
    if _can_write(path):
        # The last one who closes it takes away the log and its index; whoever may not write would leave them.
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
    """Refuse a storage that cannot be written, before anything is begun.

    Raises:
        StorageError: the file or its folder cannot be written; says what still can be done.
    """
    if not path.exists() or _can_write(path):
        return
    what = path if os.access(path.parent, os.W_OK) else f"the folder {path.absolute().parent}"
    msg = (
        f"storage {path} cannot be written: {what} is read-only, or not yours; it can be read (best, trials, "
        f"report, predict ...). To go on with its studies copy it, and name the copy: `autotune storage merge {path} "
        "--into mine.db`, then --storage mine.db"
    )
    raise StorageError(msg)


def merge_log_at_exit(path: Path) -> None:
    """Let this process leave the file whole when it ends: who copies it then has everything in it."""
    _at_exit(path.absolute())


def close_at_exit(engine: Connections) -> None:
    """Note an engine that writes a file: its connections are closed when this process ends."""
    _writing.add(engine)


@cache
def _at_exit(path: Path) -> None:
    atexit.register(_merge_log, path)


def _merge_log(path: Path) -> None:
    for engine in tuple(_writing):
        engine.dispose()
    # Without a file, or while a reader keeps the log, there is nothing to do here: the next who closes it does it.
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(_address(path, "rw"), uri=True, timeout=_BUSY_TIMEOUT_S)) as connection,
    ):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _can_write(path: Path) -> bool:
    return os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)


def _has_log(path: Path) -> bool:
    """Whether the file is written by way of a log, as its header says (https://www.sqlite.org/fileformat.html)."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _address(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"
