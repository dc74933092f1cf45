"""Folders of runs: creating an empty one, cleaning it after the run, and reading its output again."""

import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from autotune.errors import StorageError
from autotune.files import discard
from launchers import STDERR, STDOUT, JobStatus, Usage
from launchers.status import read_status
from launchers.supervisor import STATUS_FILE
from objectives.base import Output
from objectives.figure import read_text

# Larger files are removed as scratch data. Inputs and small outputs stay for the user.
_KEPT_BYTES = 4 * 2**20
# This file lists the files of a folder that were removed or shortened.
_CUT_FILE = ".autotune-cut.json"


@contextmanager
def only_ours(*folders: Path) -> Iterator[None]:
    """Let only this user change what this process and those that it starts make, by the umask, while the context lasts.

    If one of the folders is shared on purpose, the group keeps what the umask gives it. Such a folder, or the first
    above it that exists, passes its group on to new files and lets it write (`chmod g+ws`).
    """
    shared = stat.S_ISGID | stat.S_IWGRP
    modes = [
        next(path for path in (each, *each.parents) if path.exists()).stat().st_mode
        for each in map(Path.absolute, folders)
    ]
    before = os.umask(0o077)
    os.umask(before | (0o002 if any(mode & shared == shared for mode in modes) else 0o022))
    try:
        yield
    finally:
        os.umask(before)


def fresh_folder(folder: Path) -> Path:
    """Create an empty folder; discard an existing one.

    Raises:
        StorageError: The folder cannot be created.
    """
    try:
        if folder.exists():
            discard(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        msg = f"cannot make the run folder {folder}: {error.strerror}; use --runs to keep runs elsewhere"
        raise StorageError(msg) from error
    return folder.resolve()


def output_in(folder: Path, status: JobStatus) -> Output:
    """Return the output of a job that ended with this status.

    Raises:
        OSError: The output cannot be read.
    """
    return Output(read_text(folder / STDOUT) or "", read_text(folder / STDERR) or "", status, folder)


def clean(folder: Path, parts: Collection[Path] = ()) -> None:
    """Remove a finished run's scratch data; keep its small files, the end of its output, and the folders of its parts.

    The folders of parts are cleaned in the same way.
    """
    for part in parts:
        clean(part)
    # A program may do anything to its folder. An entry that cannot be removed must not cost the measurement.
    with suppress(OSError):
        entries = [entry for entry in folder.iterdir() if entry.name not in {part.name for part in parts}]
        large = [entry for entry in entries if _is_folder(entry) or entry.lstat().st_size > _KEPT_BYTES]
        # Written before anything is removed, so that a later reader knows that the output is incomplete.
        said = large and _write_cut_list(folder, large)
        for entry in large:
            if _is_folder(entry):
                shutil.rmtree(entry, ignore_errors=True)
                continue
            kept = _tail(entry, _KEPT_BYTES) if entry.name in {STDOUT, STDERR} else None
            entry.unlink(missing_ok=True)
            if kept is not None:
                entry.write_bytes(kept)
        if large and not said:
            _write_cut_list(folder, large)


def mark_unread(folder: Path) -> None:
    """Mark the folder of an ended run as one that no session will read; it stays for the user until the next one."""
    # Removing a name works even without free descriptors or disk space.
    with suppress(OSError):
        (folder / STATUS_FILE).unlink(missing_ok=True)


def is_folder_of(folder: Path, usage: Usage | None) -> bool:
    """Return whether a folder belongs to the run with this resource usage; with None, to any run that ended."""
    status = read_status(folder)
    return status is not None and usage in {None, status.usage}


def kept_output(folder: Path, usage: Usage, reads: Collection[str]) -> Output | None:
    """Return the output of a run; None if it cannot be read, is incomplete, or belongs to another run.

    Args:
        folder: The folder of the run.
        usage: The resource usage of the run, which identifies it: no two runs have the same.
        reads: The files that are read besides the printed output.
    """
    status = read_status(folder)
    if status is None or status.usage != usage or not (folder / STDOUT).is_file():
        return None
    try:
        is_cut = any(_is_cut(folder, Path(name)) for name in (STDOUT, STDERR, *reads))
        return None if is_cut else output_in(folder, status)
    except (OSError, ValueError):
        return None


def _is_cut(folder: Path, name: Path) -> bool:
    """Whether a file, or a folder that contains it, was removed or shortened."""
    place = folder
    for part in name.parts:
        with suppress(FileNotFoundError):
            if part in json.loads((place / _CUT_FILE).read_text(encoding="utf-8")):
                return True
        place /= part
    return False


def _write_cut_list(folder: Path, entries: Collection[Path]) -> bool:
    """List the removed and shortened files; return False if that fails, for example on a full disk."""
    try:
        (folder / _CUT_FILE).write_text(json.dumps([entry.name for entry in entries]), encoding="utf-8")
    except OSError:
        return False
    return True


def _is_folder(entry: Path) -> bool:
    return entry.is_dir() and not entry.is_symlink()


def _tail(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - count))
        return file.read(count)
