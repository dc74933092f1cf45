"""Values of a parameter on the command line, as in `threads=1,2,4` and `block=64..4096*2`."""

import re

from autotune.errors import StudyFileError

_RANGE = re.compile(r"(?P<low>\d+)\.\.(?P<high>\d+)(?:(?P<how>[*+])(?P<by>\d+))?")
_MOST = 100


def parse_values(text: str) -> tuple[str, list[int | str]]:
    """Return the name and the values of `NAME=1,2,4`, `NAME=1..8`, `NAME=64..4096*2` or `NAME=0..100+25`.

    Raises:
        StudyFileError: The text is none of these.
    """
    name, _, values = text.partition("=")
    if not name.isidentifier() or not values:
        msg = f"{text!r} is not NAME=VALUE,VALUE,... or NAME=LOW..HIGH, with *FACTOR or +STEP after it if you like"
        raise StudyFileError(msg)
    found = re.fullmatch(_RANGE, values)
    numbers = [_number(value.strip()) for value in values.split(",")] if found is None else _between(found)
    if not 1 < len(set(numbers)) == len(numbers) <= _MOST:
        msg = f"{text!r} has {len(set(numbers))} different values; give 2 to {_MOST}, each once"
        raise StudyFileError(msg)
    return name, numbers


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"0|-?[1-9]\d{0,17}", text) else text


def _between(found: "re.Match[str]") -> list[int | str]:
    low, high, by = int(found["low"]), int(found["high"]), int(found["by"] or 1)
    multiplies = found["how"] == "*"
    if by <= multiplies or (multiplies and not low):
        msg = f"{found[0]!r} never ends: multiply a number above 0 by 2 or more, or add 1 or more"
        raise StudyFileError(msg)
    values: list[int | str] = []
    while low <= high and len(values) <= _MOST:
        values.append(low)
        low = low * by if multiplies else low + by
    return values
