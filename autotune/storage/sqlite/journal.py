"""How SQLite keeps a transaction whole: by a log beside the file, or by a journal where several hosts may be.

The log (WAL) has an index in memory that processes of one host share, and no others: "WAL does not work over a network
filesystem" (https://www.sqlite.org/wal.html). A rollback journal is right wherever locks are.
"""

import sqlite3
import sys
from pathlib import Path

from autotune.errors import StorageError
from autotune.storage.sqlite.mount import shared_file_system

_LOG, _ROLLBACK = "wal", "delete"


def set_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Let readers go on beside a writer where the file system can do that, else keep the file safe.

    Raises:
        StorageError: others use the file by way of a log, on a file system where that can spoil it.
    """
    kind = shared_file_system(path)
    if kind is None:
        # Readers (list, show, a dashboard) must not block the coordinator, nor it them.
        connection.execute(f"PRAGMA journal_mode={_LOG}")
        return
    new = not path.stat().st_size
    (before,) = connection.execute("PRAGMA journal_mode").fetchone()
    try:
        (after,) = connection.execute(f"PRAGMA journal_mode={_ROLLBACK}").fetchone()
    except sqlite3.OperationalError as error:
        raise _in_use(path, kind) from error
    if after != _ROLLBACK:
        raise _in_use(path, kind)
    if new or before != after:
        sys.stderr.write(
            f"storage {path} is on {kind}, which other hosts may see: it is written with a rollback journal, so that "
            "they cannot spoil it. Readers and writers wait for each other; PostgreSQL (--storage "
            "postgresql://...) is better for studies of several hosts\n"
        )


def _in_use(path: Path, kind: str) -> StorageError:
    return StorageError(
        f"storage {path} is on {kind}, which other hosts may see, and is in use with a log that does not work there; "
        "end what uses it (autotune study, autotune serve), on all hosts, and use the same command again"
    )
