"""SQLite's journal: a write-ahead log, or a rollback journal on file systems that several hosts can see.

Only processes of one host share the index of a write-ahead log (WAL): "WAL does not work over a network filesystem"
(https://www.sqlite.org/wal.html). A rollback journal works wherever file locks work. The kernel's list of mounts says
which file system a file is on. `statfs` would not do: it reports all FUSE file systems alike, and an overlay instead of
the file system below it.
"""

import os
import re
import sqlite3
import sys
import time
from pathlib import Path

from autotune.errors import StorageError

_LOG, _ROLLBACK = "wal", "delete"

_SHARED = re.compile(
    r"nfs\d?|lustre|gpfs|mmfs|beegfs|fhgfs|ceph|cifs|smb\d?|smbfs|afs|auristorfs|pvfs2|orangefs|panfs|gfs2|ocfs2"
    r"|glusterfs|wekafs|quobyte|dvs|9p|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|ncpfs|coda|fuse(\..*)?"
)
"""Includes every FUSE file system: sshfs, GlusterFS and Quobyte use FUSE, and few support shared memory."""

_WRITTEN = "upperdir="  # the folder of an overlay's changed files
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOUNTS = Path("/proc/self/mountinfo")
_DEEPEST = 4
_PATIENCE_S, _PAUSE_S = 60.0, 0.01


def set_journal(connection: sqlite3.Connection, path: Path) -> None:
    """Use a write-ahead log if only this host can see the file, else a rollback journal.

    Raises:
        StorageError: Other processes use the file with a write-ahead log, on a file system where that can corrupt it.
    """
    kind = shared_file_system(path)
    if kind is None:
        # With the log, readers (reports, the web page) and the coordinator do not block each other.
        _use_log(connection)
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
            "they cannot corrupt it. Readers and writers wait for each other; PostgreSQL (--storage "
            "postgresql://...) is better for studies of several hosts\n"
        )


def _use_log(connection: sqlite3.Connection) -> None:
    # Of two connections that change the journal at once, SQLite refuses one without waiting, whatever its timeout.
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode={_LOG}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        else:
            return
        time.sleep(_PAUSE_S)


def _in_use(path: Path, kind: str) -> StorageError:
    return StorageError(
        f"storage {path} is on {kind}, which other hosts may see, and is in use with a log that does not work there; "
        "end what uses it (autotune study, autotune serve), on all hosts, and use the same command again"
    )


def shared_file_system(path: Path, mounts: Path = _MOUNTS) -> str | None:
    """Return the name of a path's file system if other hosts may see it; None if only this host does."""
    try:
        table = os.fsdecode(mounts.read_bytes())
    except OSError:  # no Linux
        return None
    return _shared_file_system_of(path.resolve(), table, _DEEPEST)


def _shared_file_system_of(path: Path, table: str, deepest: int) -> str | None:
    kind, options = "", ""
    longest = -1
    for line in table.splitlines():
        mount, _, rest = line.partition(" - ")
        fields, of_system = mount.split(" "), rest.split(" ")
        if len(fields) < 5 or len(of_system) < 3:
            continue
        point = Path(_plain(fields[4]))
        # Of two file systems on one mount point, the later hides the earlier.
        if path.is_relative_to(point) and len(point.parts) >= longest:
            longest, kind, options = len(point.parts), of_system[0], of_system[2]
    if _SHARED.fullmatch(kind):
        return kind
    upper = next((option for option in options.split(",") if option.startswith(_WRITTEN)), None)
    if kind != "overlay" or upper is None or not deepest:
        return None
    return _shared_file_system_of(Path(_plain(upper.removeprefix(_WRITTEN))), table, deepest - 1)


def _plain(text: str) -> str:
    """Return a path from the list of mounts with its octal escapes, such as that of a blank, decoded."""
    return _ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), text)
