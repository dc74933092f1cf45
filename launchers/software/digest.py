"""Short digests: enough to tell whether a program or a library is still the same."""

import hashlib
from pathlib import Path

from launchers.transient_errors import is_transient

_CHARACTERS = 16


def file_digest(path: Path) -> str:
    """Return the first 16 characters of what `sha256sum` prints; `unreadable` for a file that this user may not read.

    Raises:
        OSError: it cannot be read now, for want of descriptors or memory, or by a fault of the disk: to take it for one
            that is never readable would make a study one of another program.
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
