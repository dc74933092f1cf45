"""Folders of runs: one for each, empty when it starts; what is kept of it when it has ended, and read once more."""

import json
import os
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from autotune.errors import StorageError
from autotune.files import discard
from launchers import STDERR, STDOUT, JobStatus, Usage
from launchers.status import read_status
from launchers.supervisor import STATUS_FILE
from objectives.base import Output
from objectives.figure import read_text

# Larger files are scratch data; inputs and small outputs tell a person what happened.
_KEPT_BYTES = 4 * 2**20
# This file names what was removed of a folder, or shortened.
_CUT_FILE = ".autotune-cut.json"


def fresh_folder(folder: Path) -> Path:
    """Make an empty folder, in place of what was there before.

    Raises:
        StorageError: it cannot be made.
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
    """Return what a job left that ended so.

    Raises:
        OSError: it cannot be read.
    """
    return Output(read_text(folder / STDOUT) or "", read_text(folder / STDERR) or "", status, folder)


def clean(folder: Path, parts: Collection[Path] = ()) -> None:
    """Remove a finished run's scratch data; keep its small files, the end of its output, and the folders of its parts.

    Each of those is cleaned in the same way.
    """
    for part in parts:
        clean(part)
    # A program may do anything to its folder; what cannot be removed is no reason to lose its measurement.
    with suppress(OSError):
        entries = [entry for entry in folder.iterdir() if entry.name not in {part.name for part in parts}]
        large = [entry for entry in entries if _is_folder(entry) or entry.lstat().st_size > _KEPT_BYTES]
        # Before anything is removed: whoever reads the output once more must know that it is not whole.
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
    """Say of the folder of a run that ended that nobody will read it: it stays for a person, until the next session."""
    # To remove a name takes no descriptor and no room on the disk, of which there may be none.
    with suppress(OSError):
        (folder / STATUS_FILE).unlink(missing_ok=True)


def is_folder_of(folder: Path, usage: Usage | None) -> bool:
    """Return whether a folder is that of a run that used this, as its job wrote there; None: of any run."""
    status = read_status(folder)
    return status is not None and usage in {None, status.usage}


def kept_output(folder: Path, usage: Usage, reads: Collection[str]) -> Output | None:
    """Return what a run left in its folder; None if it cannot be read, is not whole any more, or is of another run.

    `usage` is what the run used: no two use the same. `reads` are the files that are read beside what it printed.
    """
    status = read_status(folder)
    if status is None or not is_folder_of(folder, usage) or not (folder / STDOUT).is_file():
        return None
    try:
        is_cut = any(_is_cut(folder, Path(name)) for name in (STDOUT, STDERR, *reads))
        return None if is_cut else output_in(folder, status)
    except (OSError, ValueError):
        return None


def _is_cut(folder: Path, name: Path) -> bool:
    """Whether a file of a run's folder, or a folder that it is in, was removed or shortened."""
    place = folder
    for part in name.parts:
        with suppress(FileNotFoundError):
            if part in json.loads((place / _CUT_FILE).read_text(encoding="utf-8")):
                return True
        place /= part
    return False


def _write_cut_list(folder: Path, entries: Collection[Path]) -> bool:
    """Write down what is cut; False where there is no room for that."""
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
