"""A storage's SQLite file: read by anybody who may read it, and whole when a process that wrote it has ended.

Others read a file while it is written, since new transactions first go to a log beside it (`-wal`, with an index,
`-shm`). SQLite can read such a file only where it can make both, or where they are there. So a file in a folder that
cannot be written is copied, and the copy is read. SQLite's other way, `immutable`, leaves out what is in the log only,
and reads nonsense if somebody does write.
"""

import atexit
import os
import shutil
import sqlite3
import tempfile
from contextlib import ExitStack, closing, suppress
from functools import cache
from pathlib import Path
from typing import Protocol
from urllib.parse import quote
from weakref import WeakSet

from autotune.errors import StorageError
from autotune.lockfile import temporary_folder

READING = "PRAGMA query_only=ON"
"""What a connection for reading begins with: where it may write, it only tidies up what others left beside the file."""

_LOG, _INDEX = "-wal", "-shm"
_BUSY_TIMEOUT_S = 5.0
_ATTEMPTS = 5

Signature = tuple[tuple[int, int, int] | None, ...]

# Copies that this process made, the oldest first; of files that change while they are read again and again, a few.
_MOST_COPIES = 16
_copies: dict[tuple[Path, Signature], Path] = {}


class Connections(Protocol):
    """An engine of SQLAlchemy, which takes long to import."""

    def dispose(self) -> None:
        """Close its connections."""


_writing: WeakSet[Connections] = WeakSet()


def sqlite_address(path: Path) -> str:
    """Return the address, `file:...`, by which a file is read, wherever it lies.

    Raises:
        OSError: there is no such file, or it cannot be read.
    """
    if _can_write(path):
        # The last one who closes it takes away the log and its index; whoever may not write would leave them.
        return _address(path, "rw")
    if all(_beside(path, suffix).exists() for suffix in (_LOG, _INDEX)) or not _has_log(path):
        return _address(path, "ro")
    return _address(_copy(path.absolute()), "rw")


def check_writable(path: Path) -> None:
    """Refuse a storage that cannot be written, before anything is begun.

    Raises:
        StorageError: the file or its folder cannot be written; says what still can be done.
    """
    if not path.exists() or _can_write(path):
        return
    what = path if os.access(path.parent, os.W_OK) else f"the folder {path.absolute().parent}"
    msg = (
        f"storage {path} cannot be written: {what} is read-only, or not yours; it can be read (list, show, best, "
        f"report, predict ...). To go on with its studies copy it, and name the copy: `autotune merge {path} --into "
        "mine.db`, then --storage mine.db"
    )
    raise StorageError(msg)


def whole_at_exit(path: Path) -> None:
    """Let this process leave the file whole when it ends: who copies it then has everything in it."""
    _at_exit(path.absolute())


def note_writing(engine: Connections) -> None:
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


def _copy(path: Path) -> Path:
    """Return a copy of a file with its log, as they are on disk; it is removed when this process ends."""
    for _ in range(_ATTEMPTS):
        signature = _signature(path)
        if (path, signature) in _copies:
            return _copies[path, signature]
        folder = Path(tempfile.mkdtemp(dir=_folder_of_copies()))
        copy = folder / path.name
        shutil.copyfile(path, copy)
        with suppress(FileNotFoundError):
            shutil.copyfile(_beside(path, _LOG), _beside(copy, _LOG))
        if _signature(path) == signature:
            _keep(path, signature, copy)
            return copy
    msg = f"{path} is being written, and cannot be copied meanwhile; use the same command again"
    raise StorageError(msg)


@cache
def _folder_of_copies() -> Path:
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    return until_the_end.enter_context(temporary_folder("reading"))


def _keep(path: Path, signature: Signature, copy: Path) -> None:
    _copies[path, signature] = copy
    while len(_copies) > _MOST_COPIES:
        shutil.rmtree(_copies.pop(next(iter(_copies))).parent, ignore_errors=True)


def _signature(path: Path) -> Signature:
    """Return what changes when somebody writes the file or its log."""
    return tuple(_state(file) for file in (path, _beside(path, _LOG)))


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


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
