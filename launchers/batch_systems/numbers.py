"""Numbers and times in the texts of batch systems."""

import re


def count_of(text: str) -> int | None:
    """Read a whole number of digits alone; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def hours_s(text: str) -> float | None:
    """Read `hours:minutes:seconds` or `minutes:seconds`; None if it is neither."""
    match = re.fullmatch(r"(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,9})", text)
    return int(match[1] or 0) * 3600.0 + int(match[2]) * 60.0 + int(match[3]) if match else None


def hours_text(seconds: int) -> str:
    """Return a time as `hours:minutes:seconds`."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def trailing_number(text: str) -> int:
    """Return the number at the end of a text; 0 if there is none."""
    match = re.search(r"(?<![0-9])[0-9]{1,18}$", text)
    return int(match[0]) if match else 0
