"""How SQLite keeps a transaction whole: by a log beside the file, or by a journal where several hosts may be.

The log (WAL) has an index in memory that processes of one host share, and no others: "WAL does not work over a network
filesystem" (https://www.sqlite.org/wal.html). A rollback journal is right wherever locks are.
"""

import os
import re
import sqlite3
import sys
from pathlib import Path

from autotune.errors import StorageError

_LOG, _ROLLBACK = "wal", "delete"

_SHARED = re.compile(
    r"nfs\d?|lustre|gpfs|mmfs|beegfs|fhgfs|ceph|cifs|smb\d?|smbfs|afs|auristorfs|pvfs2|orangefs|panfs|gfs2|ocfs2"
    r"|glusterfs|wekafs|quobyte|dvs|9p|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|ncpfs|coda|fuse(\..*)?"
)
"""Also FUSE whatever it shows: sshfs, GlusterFS and Quobyte are such, and memory is seldom shared on it."""

_WRITTEN = "upperdir="  # of an overlay: where its changed files lie
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOUNTS = Path("/proc/self/mountinfo")
_DEEPEST = 4


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


def shared_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the name of the file system of a path, if other hosts may see it, too; None if only this one does."""
    try:
        table = os.fsdecode(mounts.read_bytes())
    except OSError:  # no Linux
        return None
    return _shared(path.resolve(), table, _DEEPEST)


def _shared(path: Path, table: str, deepest: int) -> str | None:
    kind, options = "", ""
    longest = -1
    for line in table.splitlines():
        mount, _, rest = line.partition(" - ")
        fields, of_system = mount.split(" "), rest.split(" ")
        if len(fields) < 5 or len(of_system) < 3:
            continue
        point = Path(_plain(fields[4]))
        # Of two on one point the later one hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind, options = len(point.parts), of_system[0], of_system[2]
    if _SHARED.fullmatch(kind):
        return kind
    upper = next((option for option in options.split(",") if option.startswith(_WRITTEN)), None)
    if kind != "overlay" or upper is None or not deepest:
        return None
    return _shared(Path(_plain(upper.removeprefix(_WRITTEN))), table, deepest - 1)


def _plain(text: str) -> str:
    """Return a path of the list as it is: blanks and the like stand there as octal numbers."""
    return _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), text)
