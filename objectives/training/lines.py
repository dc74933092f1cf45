"""Lines of live output: their states, and the numbers in them.

A line is the text between two newlines. It may hold many states of a live bar, separated by carriage returns; states
that come as lines of their own work as well.
"""

import math
import re
from collections.abc import Iterable, Mapping

LINE_CHARACTERS = 2**16
"""Longer lines are not read as JSON or plain progress; a line of live bars may have any length."""

MOST_STEPS = 2**53
"""Beyond this a float cannot count by one."""

NUMBER = r"[-+]?(?:\d{1,40}(?:\.\d{0,40})?|\.\d{1,40}|nan|inf(?:inity)?)(?:[eE][-+]?\d{1,4})?"
"""A number, in a bounded number of characters."""

ENDS = r"(?!\w|\.\w|,\d)"
"""After a number: no unit, and no thousands separator."""

ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[@-~]")
"""A colour or a movement of the cursor."""

_LEADING = re.compile(rf"\s*({NUMBER}){ENDS}", re.IGNORECASE)


def leading_number(text: str) -> float | None:
    """Return the number at the start of a text; None without a number, or if a unit follows it without a blank."""
    match = _LEADING.match(text)
    return float(match[1]) if match else None


def states(line: str) -> list[str]:
    """Return the states of a live line without colours and cursor movements; at least one, which may be empty."""
    bare = ANSI.sub("", line).replace("\b", "")
    return [state.strip() for state in bare.split("\r") if state.strip()] or [""]


def numbers(pairs: Iterable[tuple[str, ...]]) -> dict[str, float]:
    """Return the metrics in pairs of a name and the text of a number, without those that are not finite."""
    return finite({name: float(text) for name, text in pairs})


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics whose values are finite."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
