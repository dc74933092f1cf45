"""Shared memory that a job leaves: files in /dev/shm and System V segments, which no process's end removes.

Imported by the supervisor, so it uses the standard library only. What is the job's is what its own processes made: a
file that one of them maps, a segment that one of them made, neither of which was there before. The user's other
programs may make some meanwhile, and may leave data there on purpose: nothing else is ever removed.
"""

# pathlib takes longer to import than the supervisor to start.
# ruff: noqa: PTH108, PTH116, PTH123, PTH208

import contextlib
import ctypes
import os
import stat

SHARED_MEMORY = "/dev/shm"  # noqa: S108
_SEGMENTS = "/proc/sysvipc/shm"
_IPC_RMID = 0

File = tuple[int, int]
"""The device and the inode of a file, by which a process's maps name it."""
Segment = tuple[int, int, int]
"""Id, creator and time of change of a System V segment: an id alone is used again."""


class JobSharedMemory:
    """What the processes of one job have made, as far as it was seen."""

    def __init__(self) -> None:
        """Note what is there before the job starts."""
        self._before = {name for name, _ in _files().items()}, set(_segments())
        self._files: dict[str, File] = {}
        self._made: set[Segment] = set()

    def note(self, pids: list[int]) -> None:
        """See which new files and segments belong to these processes, all of which are the job's."""
        for segment in _segments().keys() - self._before[1] - self._made:
            if segment[1] in pids:
                self._made.add(segment)
        new = {name: file for name, file in _files(self._before[0]).items() if self._files.get(name) != file}
        if not new:
            return
        mapped = set().union(*map(_mapped_files, pids))
        self._files |= {name: file for name, file in new.items() if file in mapped}

    def remove(self) -> int:
        """Remove what belongs to the job's processes, all of which have ended, and is used by no other; count it."""
        present = _segments()
        segments = [segment for segment in self._made if present.get(segment) == 0]
        there = _files()
        files = {name: file for name, file in self._files.items() if there.get(name) == file}
        if files:
            in_use = _files_in_use()
            files = {name: file for name, file in files.items() if file not in in_use}
        removed = 0
        for name in files:
            with contextlib.suppress(OSError):
                os.unlink(f"{SHARED_MEMORY}/{name}")
                removed += 1
        for segment in segments:
            removed += ctypes.CDLL(None).shmctl(segment[0], _IPC_RMID, None) == 0
        return removed


def find_abandoned() -> tuple[list[str], list[int]]:
    """Return the files in /dev/shm and the ids of segments that this user owns and no process uses."""
    in_use = _files_in_use()
    files = [f"{SHARED_MEMORY}/{name}" for name, file in sorted(_files().items()) if file not in in_use]
    return files, sorted(segment[0] for segment, attached in _segments().items() if not attached)


def _files(but: set[str] | frozenset[str] = frozenset()) -> dict[str, File]:
    """Return the plain files of this user that nobody else may open; those of others' could be used unseen."""
    files: dict[str, File] = {}
    try:
        names = os.listdir(SHARED_MEMORY)
    except OSError:
        return files
    for name in names:
        if name in but:
            continue
        with contextlib.suppress(OSError):
            status = os.lstat(f"{SHARED_MEMORY}/{name}")
            private = stat.S_ISREG(status.st_mode) and not status.st_mode & 0o066
            if private and status.st_uid == os.getuid():
                files[name] = status.st_dev, status.st_ino
    return files


def _segments() -> dict[Segment, int]:
    """Return the segments that this user owns, and how many have each attached."""
    segments: dict[Segment, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError), open(_SEGMENTS, encoding="ascii") as file:
        columns = file.readline().split()
        for line in file:
            row = dict(zip(columns, map(int, line.split()), strict=False))
            if row["uid"] == os.getuid():
                segments[row["shmid"], row["cpid"], row["ctime"]] = row["nattch"]
    return segments


def _mapped_files(pid: int) -> set[File]:
    """Return the files in /dev/shm that a process maps."""
    files: set[File] = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as maps:
        for line in maps:
            # A program in a container may see the folder under another path.
            _, _, _, device, inode, *path = line.split(maxsplit=5)
            if path and inode != b"0":
                major, _, minor = device.partition(b":")
                files.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return files


def _files_in_use() -> set[File]:
    """Return the files that a process of this user maps or has open."""
    files: set[File] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        files |= _mapped_files(int(pid))
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{descriptor}")
                    files.add((status.st_dev, status.st_ino))
    return files
