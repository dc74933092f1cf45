"""Short digests, long enough to tell whether a program or a library is unchanged."""

import hashlib
from pathlib import Path

from launchers.software.transient_errors import is_transient

_CHARACTERS = 16


def file_digest(path: Path) -> str:
    """Return the first 16 characters of what `sha256sum` prints; `unreadable` for a file that this user may not read.

    Raises:
        OSError: The file cannot be read at the moment, for lack of descriptors or memory, or after a disk error.
            Calling it unreadable would make the study one of another program.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:_CHARACTERS]
    except OSError as error:
        if is_transient(error):
            raise
        return "unreadable"


def text_digest(text: str) -> str:
    """Return the first 16 characters of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:_CHARACTERS]
