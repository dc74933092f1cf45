"""The file system under a folder: whether several hosts may see it, as the kernel's list of mounts says.

The list has the names of file systems. The numbers of `statfs` have not: to it every FUSE file system is one, and an
overlay hides what is below it.
"""

import os
import re
from pathlib import Path

_SHARED = re.compile(
    r"nfs\d?|lustre|gpfs|mmfs|beegfs|fhgfs|ceph|cifs|smb\d?|smbfs|afs|auristorfs|pvfs2|orangefs|panfs|gfs2|ocfs2"
    r"|glusterfs|wekafs|quobyte|dvs|9p|virtiofs|vboxsf|vmhgfs|prl_fs|drvfs|ncpfs|coda|fuse(\..*)?"
)
"""Also FUSE whatever it shows: sshfs, GlusterFS and Quobyte are such, and memory is seldom shared on it."""

_WRITTEN = "upperdir="  # of an overlay: where its changed files lie
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOUNTS = Path("/proc/self/mountinfo")
_DEEPEST = 4


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
