"""Folders of runs: one for each, empty when it starts."""

import secrets
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
            # A host that was cut off may still write there: it goes on in a folder of another name.
            aside = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
            folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        folder.mkdir(parents=True)
    except OSError as error:
        msg = f"cannot make the run folder {folder}: {error.strerror}; use --runs to keep runs elsewhere"
        raise StorageError(msg) from error
    return folder.resolve()
