"""Values of a parameter on the command line, as in `threads=1,2,4` and `block=64..4096*2`."""

import re
from collections.abc import Sequence
from itertools import takewhile

from autotune.errors import StudyFileError

_RANGE = re.compile(r"(?P<low>\d{1,18})\.\.(?P<high>\d{1,18})(?:(?P<how>[*+])(?P<by>\d{1,18}))?")
_MOST = 100
_NUMBER = r"\d+(?:\.\d+)?"
# The first of the words that a shell makes of `-O{level=1,3}`; the others have only the number.
_ASSIGNED = re.compile(rf"((?:.*\W)?)([A-Za-z_]\w*)=({_NUMBER})(\D.*)?", re.ASCII | re.DOTALL)


def parse_values(text: str) -> tuple[str, list[int | str]]:
    """Return the name and the values of `NAME=1,2,4`, `NAME=1..8`, `NAME=64..4096*2` or `NAME=0..100+25`.

    Raises:
        StudyFileError: The text has another form.
    """
    name, _, values = text.partition("=")
    if not name.isidentifier() or not values:
        msg = f"{text!r} is not NAME=VALUE,VALUE,... or NAME=LOW..HIGH, with *FACTOR or +STEP after it if you like"
        raise StudyFileError(msg)
    found = re.fullmatch(_RANGE, values)
    numbers: Sequence[int | str] = (
        [_number(value.strip()) for value in values.split(",")] if found is None else _between(found)
    )
    different = len(numbers if found else set(numbers))
    if not 1 < different == len(numbers) <= _MOST:
        msg = f"{text!r} has {different} different values; give 2 to {_MOST}, each once"
        raise StudyFileError(msg)
    return name, list(numbers)


def expanded_note(words: Sequence[str]) -> str:
    """Return that a shell may have expanded `-O{level=1,3}` where the words are `-Olevel=1 -O3`; else empty."""
    for index, word in enumerate(words):
        if not (found := _ASSIGNED.fullmatch(word)):
            continue
        before, name, value, after = found.groups(default="")
        for at in range(len(name)):
            start = before + name[:at]
            other = re.compile(rf"{re.escape(start)}({_NUMBER}){re.escape(after)}", re.ASCII)
            others = [match[1] for match in takewhile(bool, map(other.fullmatch, words[index + 1 :])) if match]
            if others and not name[at].isdecimal():
                braces = f"{start}{{{name[at:]}={','.join([value, *others])}}}{after}"
                return f"perhaps your shell has expanded {braces}; put single quotes around it: '{braces}'"
    return ""


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"0|-?[1-9]\d{0,17}", text) else text


def _between(found: "re.Match[str]") -> Sequence[int]:
    low, high, by = int(found["low"]), int(found["high"]), int(found["by"] or 1)
    multiplies = found["how"] == "*"
    if low > high:
        msg = f"{found[0]!r} is empty, because {low} is above {high}: give the lower number first"
        raise StudyFileError(msg)
    if by <= multiplies or (multiplies and not low):
        msg = f"{found[0]!r} never ends: multiply a number above 0 by 2 or more, or add 1 or more"
        raise StudyFileError(msg)
    if not multiplies:
        return range(low, high + 1, by)
    values = [low]
    while values[-1] * by <= high:
        values.append(values[-1] * by)
    return values
