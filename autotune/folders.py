"""Folders of runs: one for each, empty when it starts."""

import shutil
from pathlib import Path

from autotune.errors import StorageError


def fresh_folder(folder: Path) -> Path:
    """Make an empty folder, in place of what was there before.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        msg = f"cannot make the run folder {folder}: {error.strerror}; use --runs to keep runs elsewhere"
        raise StorageError(msg) from error
    return folder.resolve()
