"""Parse and format numbers and times in the texts of batch systems."""

import re


def count_of(text: str) -> int | None:
    """Parse a whole number made of digits alone; None for anything else."""
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None


def hours_s(text: str) -> float | None:
    """Parse `hours:minutes:seconds` or `minutes:seconds`; None for anything else."""
    match = re.fullmatch(r"(?:([0-9]{1,9}):)?([0-9]{1,9}):([0-9]{1,9})", text)
    return int(match[1] or 0) * 3600.0 + int(match[2]) * 60.0 + int(match[3]) if match else None


def hours_text(seconds: int) -> str:
    """Format seconds as `hours:minutes:seconds`."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def trailing_number(text: str) -> int:
    """Return the number at the end of a text; 0 without one."""
    match = re.search(r"(?<![0-9])[0-9]{1,18}$", text)
    return int(match[0]) if match else 0
