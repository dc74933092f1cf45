"""Short digests: enough to tell whether a program or a library is still the same."""

import hashlib
from pathlib import Path

_CHARACTERS = 16


def file_digest(path: Path) -> str:
    """Return the first 16 characters of what `sha256sum` prints; `unreadable` for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:_CHARACTERS]
    except OSError:
        return "unreadable"


def text_digest(text: str) -> str:
    """Return the first 16 characters of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:_CHARACTERS]
