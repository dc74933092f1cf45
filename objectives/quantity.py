"""Numbers, and numbers with units, in the notations of programs and of Fortran, C and Python."""

import re

from objectives.units import conversion, is_size, is_time

_THOUSANDS = r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"
_WITH_POINT = r"(?:\d+\.\d*|\.\d+)"
# Fortran writes D for E, and leaves the letter out where the exponent has three digits: 0.1+103.
NUMBER = re.compile(
    rf"[-+]?(?:{_WITH_POINT}[-+]\d{{3}}(?![\d.])|(?:{_THOUSANDS}|{_WITH_POINT}|\d+)(?:[eEdDqQ][-+]?\d+)?)", re.ASCII
)
_LETTERLESS = re.compile(r"(?<=[.\d])([-+]\d+)$")
_EXPONENT = re.compile(r"[eEdDqQ][-+]?\d{1,4}(?![\w.])", re.ASCII)

# The longest text that is read as one quantity.
_CHARACTERS = 80
# `1:02.35`, `1:02:03`, Slurm's `1-02:03:04`, and Python's `1 day, 2:03:04`.
_CLOCK = re.compile(r"(?:(\d{1,9})(?:-| days?, ))?(?:(\d{1,9}):)?(\d{1,9}):(\d{2}(?:\.\d*)?)(?![:.]?\d)", re.ASCII)
_VALUE = r"(\d{1,12}(?:\.\d*)?)\s{0,2}"
# `1h 2m`, `2h50m12s`, `0m1.52s`, `1 day, 2 hours`
_AND = r"(?![a-z/]),?(?: and)?\s{0,2}"
_DURATION = re.compile(
    rf"(?:{_VALUE}d(?:ays?)?{_AND})?(?:{_VALUE}h(?:r|rs|ours?)?{_AND})?(?:{_VALUE}m(?:in|ins|inutes?)?{_AND})?"
    rf"(?:{_VALUE}s(?:ec|ecs|econds?)?(?![a-z/]))?",
    re.ASCII | re.IGNORECASE,
)
_PARTS_S = (86400.0, 3600.0, 60.0, 1.0)
_WORD = r"([^\W\d_][\w-]{0,30}(?:/[^\W\d_][\w-]{0,20}){0,2}|%)"
_UNIT = re.compile(rf"[ \t]{{0,4}}[\[(]?{_WORD}(?![\w/]|[ \t]{{0,4}}=)")
# After a number these may also name the next one: `950 min 3 max 1000`.
_NAME_OF_NEXT = re.compile(r"[ \t]{0,4}(?:min|[mhdBJW])[ \t]{0,4}[:\d]")
_SUFFIXES = "kMGTP"


class UnitError(ValueError):
    """A number has a unit that cannot be converted as asked."""


def to_number(found: object) -> float | None:
    """Return a finite number, also from its text (`1.2k`, `1,234.5`, `0.125D+02`); None for anything else."""
    if isinstance(found, bool) or not isinstance(found, int | float | str):
        return None
    try:
        value = read_quantity(found) if isinstance(found, str) else float(found)
    except (UnitError, OverflowError):
        return None
    return value if value is not None and abs(value) < float("inf") else None


def read_quantity(text: str, unit: str = "", *, after: str = "", printed: str | None = None) -> float | None:
    """Return a number in `unit`; None if the text is no number.

    A unit is looked for in `printed`, in the text itself, then directly after it.

    Args:
        text: The text of the number, which may hold its unit, too: `950.40ms`, `1h 2m`.
        unit: The unit to return; empty for a number without one.
        after: The text that follows in the line.
        printed: The unit that the program printed, if it is known.

    Raises:
        UnitError: The text holds a unit, or `printed` is one, that cannot be converted to `unit`.
    """
    text = text.strip()
    if text.endswith((",", ";")):
        text, after = text[:-1], ""
    seconds = None if printed else _seconds(text, after)
    if seconds is not None:
        if not is_time(unit):
            raise UnitError(_unconvertible(text, "s", unit))
        return _converted(text, seconds, "s", unit)
    number = NUMBER.match(text)
    if number is None:
        return None
    value, rest = _float(number[0]), text[number.end() :].strip()
    if rest in {*_SUFFIXES, "K"} and not is_time(unit):
        power = _SUFFIXES.index(rest.replace("K", "k")) + 1
        if not is_size(unit):
            value, rest = value * 1000.0**power, ""
        else:
            value, rest = value * 1024.0**power, "B"
    if rest and not re.fullmatch(_WORD, rest):
        return None
    if rest or printed:
        return _converted(text, value, rest or printed or "", unit)
    following = unit_after(after)
    convert = conversion(following, unit) if following and unit else None
    return value if convert is None else convert(value)


def unit_after(after: str) -> str | None:
    """Return the word at the beginning of the text behind a number, which may be its unit; None without one."""
    match = None if _NAME_OF_NEXT.match(after) else _UNIT.match(after)
    return match[1] if match else None


def whole_number(text: str, after: str) -> tuple[str, str]:
    """Return the text of a number together with its exponent or suffix, which begins `after`, and what follows."""
    more = _EXPONENT.match(after) or re.match(r"[kKMGTP](?![\w/])", after)
    if more is None or (not text[-1:].isdigit() and text[-1:] != "."):
        return text, after
    return text + more[0], after[more.end() :]


def _converted(text: str, value: float, printed: str, unit: str) -> float:
    convert = conversion(printed, unit) if unit else None
    if convert is None:
        raise UnitError(_unconvertible(text, printed, unit))
    return convert(value)


def _unconvertible(text: str, printed: str, unit: str) -> str:
    if not unit:
        return f"{text!r} is in {printed}, and no unit is declared: write unit = {printed!r}"
    return f"{text!r} is in {printed}, which cannot be converted to {unit}"


def _seconds(text: str, after: str) -> float | None:
    """Return a time of several parts in seconds; None for other text."""
    if len(text) > _CHARACTERS:
        return None
    line = f"{text}{after[: _CHARACTERS - len(text)]}"
    match = _CLOCK.match(line) or _DURATION.match(line)
    if match is None or match.end() < len(text):
        return None
    parts = match.groups()
    if sum(part is not None for part in parts) < 2:
        return None
    return sum(float(part) * each for part, each in zip(parts, _PARTS_S, strict=True) if part is not None)


def _float(text: str) -> float:
    plain = re.sub("[dDqQ]", "e", text.replace(",", ""))
    return float(plain if "e" in plain.lower() else _LETTERLESS.sub(r"e\1", plain))
