"""Shared memory that a job leaves: files in /dev/shm and System V segments, which no process's end removes.

Imported by the supervisor, so it uses the standard library only. It attributes to the job only what the job's own
processes made: a file that one of them maps or a segment that one of them created, and that did not exist before.
A record of it is in the job's folder, for the process that finds the supervisor killed. Nothing else is ever removed,
since the user's other programs may create shared memory meanwhile and leave data there on purpose.
"""

# pathlib takes longer to import than the supervisor to start.
# ruff: noqa: PTH104, PTH108, PTH116, PTH118, PTH123, PTH208

import contextlib
import ctypes
import json
import os
import stat

SHARED_MEMORY = "/dev/shm"  # noqa: S108

SHARED_MEMORY_FILE = ".autotune-shared-memory.json"
"""Holds what existed before the job, and in each further line what a process saw the job make."""

_SEGMENTS = "/proc/sysvipc/shm"
_IPC_RMID = 0

File = tuple[int, int]
"""The device and inode of a file, by which a process's maps identify it."""
Segment = tuple[int, int, int]
"""Id, creator and time of change of a System V segment; the id alone may be reused."""


class JobSharedMemory:
    """The shared memory that the processes of one job were seen to make."""

    def __init__(self) -> None:
        """Note what exists before the job starts."""
        self._before = set(_files()), set(_segments())
        self._files: dict[str, File] = {}
        self._made: set[Segment] = set()
        self._folder: str | None = None

    @classmethod
    def read(cls, folder: "os.PathLike[str] | str") -> "JobSharedMemory | None":
        """Return the record in the folder of a job; None without a readable one."""
        memory = cls()
        memory.add_to(os.fspath(folder))
        try:
            with open(os.path.join(folder, SHARED_MEMORY_FILE), encoding="utf-8") as file:
                before, *noted = [line for line in file if line.strip()]
            kept = json.loads(before)
            memory._before = set(kept["names"]), {*map(_segment, kept["segments"])}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        for line in noted:
            # A full disk may have cut a line.
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                kept = json.loads(line)
                files = {name: (device, inode) for name, (device, inode) in kept["files"].items()}
                memory._made |= {*map(_segment, kept["made"])}
                memory._files |= files
        return memory

    def keep_in(self, folder: str) -> None:
        """Begin a record in the job's folder, unless the disk is full."""
        self._folder = folder
        names, segments = self._before
        with contextlib.suppress(OSError):
            path = os.path.join(folder, SHARED_MEMORY_FILE)
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                file.write(json.dumps({"names": [*names], "segments": [*segments]}))
            os.rename(f"{path}.new", path)

    def add_to(self, folder: str) -> None:
        """Add to the record that another process of the job has begun."""
        self._folder = folder

    def include_added(self) -> None:
        """Include what other processes of the job have added to the record."""
        added = None if self._folder is None else self.read(self._folder)
        if added is not None:
            self._made |= added._made
            self._files |= added._files

    def note(self, pids: list[int]) -> None:
        """Note which new files and segments belong to the job's processes."""
        made = {segment for segment in _segments().keys() - self._before[1] - self._made if segment[1] in pids}
        new = {name: file for name, file in _files(self._before[0]).items() if self._files.get(name) != file}
        mapped = set().union(*map(_files_mapped_by, pids)) if new else set()
        mapped_files = {name: file for name, file in new.items() if file in mapped}
        self._made |= made
        self._files |= mapped_files
        if self._folder is not None and (made or mapped_files):
            line = "\n" + json.dumps({"files": mapped_files, "made": [*made]})
            with contextlib.suppress(OSError):
                path = os.path.join(self._folder, SHARED_MEMORY_FILE)
                descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
                try:
                    os.write(descriptor, line.encode())
                finally:
                    os.close(descriptor)

    def remove(self) -> int:
        """Remove the job's shared memory that no other process uses; return how many files and segments.

        All processes of the job must have ended.
        """
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
    """Return the files in /dev/shm and the ids of the segments that this user owns and no process uses."""
    in_use = _files_in_use()
    files = [f"{SHARED_MEMORY}/{name}" for name, file in sorted(_files().items()) if file not in in_use]
    return files, sorted(segment[0] for segment, attached in _segments().items() if not attached)


def _segment(kept: list[int]) -> Segment:
    number, creator, changed = kept
    return int(number), int(creator), int(changed)


def _files(but: set[str] | frozenset[str] = frozenset()) -> dict[str, File]:
    """Return this user's regular files that others may not open. Files open to others could be in use unseen."""
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
    """Return the segments that this user owns, with the number of processes attached to each."""
    segments: dict[Segment, int] = {}
    with contextlib.suppress(OSError, ValueError, IndexError), open(_SEGMENTS, encoding="ascii") as file:
        columns = file.readline().split()
        for line in file:
            row = dict(zip(columns, map(int, line.split()), strict=False))
            if row["uid"] == os.getuid():
                segments[row["shmid"], row["cpid"], row["ctime"]] = row["nattch"]
    return segments


def _files_mapped_by(pid: int) -> set[File]:
    """Return the files that a process maps."""
    files: set[File] = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as maps:
        for line in maps:
            # Compare inodes, not paths: a program in a container may see the folder under another path.
            _, _, _, device, inode, *path = line.split(maxsplit=5)
            if path and inode != b"0":
                major, _, minor = device.partition(b":")
                files.add((os.makedev(int(major, 16), int(minor, 16)), int(inode)))
    return files


def _files_in_use() -> set[File]:
    """Return the files that any process of this user maps or has open."""
    files: set[File] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        files |= _files_mapped_by(int(pid))
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{descriptor}")
                    files.add((status.st_dev, status.st_ino))
    return files
