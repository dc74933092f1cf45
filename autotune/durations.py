"""Durations as people write them: `90`, `90s`, `15m`, `1h30m`, `2d`."""

import re
from math import inf

_UNITS_S = (86400, 3600, 60, 1)
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def parse_duration_s(text: str) -> float:
    """Read a duration in seconds; a number alone is one of seconds.

    Raises:
        ValueError: it is none, not positive, or beyond what a number can hold.
    """
    match = _DURATION.fullmatch(text.strip())
    parts = [float(part or 0) for part in match.groups()] if match else []
    seconds = sum(part * unit for part, unit in zip(parts, _UNITS_S, strict=False))
    if not 0 < seconds < inf:
        msg = f"{text!r} is not a duration; write 90s, 15m, 1h30m"
        raise ValueError(msg)
    return seconds
