"""The disk space, shared memory and address space that Ray needs, checked before it starts.

Without them Ray fails after half a minute and does not say why, or never ends.
"""

import os
import resource
from pathlib import Path

from autotune.errors import CannotRunHereError

OBJECT_STORE_BYTES = 80 * 2**20
"""The size of Ray's object store: runs pass small values only, and Ray's default is a third of the machine's memory."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  Ray's own choice
# Ray writes 120 KB when it starts; its logs and sockets grow with the number of workers.
_FOLDER_BYTES = 4 * 2**20
# A process of Ray has 1.5 GB on two cores, nearly all of it unused.
_ADDRESS_BYTES = 2 * 2**30
_MIB = 2**20


def check_room(folder: Path) -> Path:
    """Return the folder for Ray's object store: shared memory, or else `folder`, where its logs and sockets are.

    Raises:
        CannotRunHereError: There is too little room; the message names the limit or the folders.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _ADDRESS_BYTES:
        msg = (
            f"a process may have {limit // _MIB} MiB of address space (ulimit -v {limit // 1024}), and each process of "
            f"Ray, which makes the runs, needs {_ADDRESS_BYTES // _MIB} MiB: raise the limit (ulimit -v unlimited)"
        )
        raise CannotRunHereError(msg)
    shared = _free_bytes(SHARED_MEMORY) if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None
    needed, why = _FOLDER_BYTES, ""
    if shared is None or shared < OBJECT_STORE_BYTES:
        needed += OBJECT_STORE_BYTES
        why = "is not writable" if shared is None else f"has {shared // _MIB} MiB free"
        why = (
            f" and {SHARED_MEMORY} {why}, so that the {OBJECT_STORE_BYTES // _MIB} MiB of its object store go there too"
        )
    free = _free_bytes(folder)
    if free < needed:
        msg = (
            f"Ray, which makes the runs, needs {needed // _MIB} MiB in {folder}, which has {free // _MIB} MiB free"
            f"{why}: free some space, or let AUTOTUNE_USER_FOLDER name a folder with a short path and more space"
        )
        raise CannotRunHereError(msg)
    return folder if why else SHARED_MEMORY


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
