"""Durations as people write them: `90`, `90s`, `15m`, `1h30m`, `2d`."""

import re
from math import inf

_UNITS_S = (86400, 3600, 60, 1)
_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile("".join(f"(?:{_NUMBER}{unit})?" for unit in "dhms"))


def parse_duration_s(text: str) -> float:
    """Return a duration in seconds; a number without a unit means seconds.

    Raises:
        ValueError: The text is not a duration, not positive, or too large for a number.
    """
    alone = re.fullmatch(_NUMBER, text.strip())
    match = _DURATION.fullmatch(f"{alone[0]}s" if alone else text.strip())
    parts = [float(part or 0) for part in match.groups()] if match else []
    seconds = sum(part * unit for part, unit in zip(parts, _UNITS_S, strict=False))
    if not 0 < seconds < inf:
        msg = f"{text!r} is not a duration; write 90s, 15m, 1h30m"
        raise ValueError(msg)
    return seconds
