"""Read small files of the kernel: a line of text or a number."""

# pathlib takes longer to import than the supervisor to start.
# ruff: noqa: PTH123, PTH208

import os

_DIGITS = 20  # of 64 bits


def list_names(folder: str) -> list[str]:
    """Return the names in a folder, sorted; none if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def read_text(path: str) -> str:
    """Return the text of a file without surrounding blanks; empty if it cannot be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def read_number(path: str) -> int | None:
    """Return the non-negative whole number in a file; None if it cannot be read or holds anything else."""
    text = read_text(path)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None
