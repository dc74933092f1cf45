"""Text for people: configurations, their values, and quantities with their units."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from objectives.base import Metric
    from spaces import Configuration, Space, Value

# Larger whole numbers are written with an exponent, which is shorter.
_WHOLE = 1e12

# Values of a metric outside of these two get another prefix; without a prefix, those above `_LONG` get an exponent.
_FEW, _MANY, _LONG = 1e-3, 1e4, 1e7
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_UP)
_PREFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15}
_SCALED = re.compile(r"([numkMGTP]?)(s|B|bytes?|bit|[Ff]lops?|FLOPS?|Hz|W|J)((?<!s)/s)?")

# Controls (C0, C1), formats (also those that change the direction), surrogates, private, unassigned, separators.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

# Kinds of failure that have a plural; the others are `timed out` and the like.
_NOUNS = ("error", "result")

UNSET = "unset"
"""The value of a parameter that has none."""


def configuration_text(configuration: "Configuration") -> str:
    """Return a configuration as text: only the parameters that are set."""
    return " ".join(f"{name}={value_text(value)}" for name, value in configuration.items()) or "(nothing set)"


def with_derived(space: "Space", configuration: "Configuration") -> str:
    """Return a configuration as text, with the values that its space derives from it."""
    derived = space.derived_values(configuration)
    return configuration_text(configuration) + (f"  (derived: {configuration_text(derived)})" if derived else "")


def value_text(value: object) -> str:
    """Return a value as text; None as `UNSET`."""
    if value is None:
        return UNSET
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < _WHOLE else f"{value:g}"
    return str(value)


def parameter_text(value: "Value", name: str) -> str:
    """Return the value of a parameter as text: a number of bytes in KiB, MiB or GiB if that is whole."""
    if isinstance(value, int | float) and name.endswith("bytes") and value > 0 and value % 1024 == 0:
        power = next((power for power in (3, 2, 1) if value % 1024**power == 0), 0)
        return f"{value / 1024**power:.0f} {'KMG'[power - 1]}iB"
    return value_text(value)


def without_rounding_error(value: float) -> float:
    """Return a computed value rounded to 12 digits: a median of logarithms is 16.300000000000004 for a 16.3."""
    return float(f"{value:.12g}")


def quantity(value: float, metric: "Metric") -> str:
    """Return a value of a metric as text with four digits, and with its unit, if it has one: `302.7 MB/s`, `0.35 s`."""
    scaled = _SCALED.fullmatch(metric.unit)
    size = abs(float(f"{value:.4g}"))
    if scaled is None or not isfinite(value) or not size or _FEW <= size < _MANY:
        return f"{_digits(value)} {metric.unit}".rstrip()
    given, base, per_s = scaled.groups(default="")
    # 12 ks is unusual, and a time is compared with others in seconds.
    most = 0 if base == "s" else max(_PREFIXES.values())
    power = max(min((floor(log10(size)) + _PREFIXES[given]) // 3 * 3, most), min(_PREFIXES.values()))
    prefix = next(prefix for prefix, its in _PREFIXES.items() if its == power)
    base = "B" if base.startswith("byte") else base
    return f"{_digits(value * 10.0 ** (_PREFIXES[given] - power))} {prefix}{base}{per_s}"


def _digits(value: float) -> str:
    """Return a number with four digits; a larger one with all before the point, or at last with an exponent."""
    # A tie is rounded away from zero, as JavaScript does.
    four = float(_FOUR_DIGITS.create_decimal_from_float(value))
    return (
        f"{float(Decimal(value).to_integral_value(ROUND_HALF_UP)):.0f}" if _MANY <= abs(four) < _LONG else f"{four:.4g}"
    )


def plain(text: str) -> str:
    """Return a text of others without what could control a terminal: control, format and other invisible characters.

    Line feeds and tabs stay.
    """
    if text.isprintable():
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _UNSEEN)


def plain_line(text: str) -> str:
    """Return a text of others as one line without invisible characters."""
    return text if text.isprintable() else plain(" ".join(text.split()))


def count_failures(counts: Mapping[str, int]) -> list[str]:
    """Return how many trials failed, by kind: `2 application errors`, `1 timed out`."""
    return [f"{count} {kind}{'s' if count > 1 and kind.endswith(_NOUNS) else ''}" for kind, count in counts.items()]


def join_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: `a, b and c`."""
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else "".join(words)


def as_sentence(words: str) -> str:
    """Return words as a sentence, with a capital and a full stop."""
    return f"{words[0].upper()}{words[1:]}."


def output_folder(job: Mapping[str, Any]) -> str:
    """Return the sentence about a run's output folder, from its job's description; empty if the folder is gone."""
    folder = Path(job.get("folder", ""))
    if not folder.is_absolute() or not folder.is_dir():
        return ""
    here = Path.cwd()
    return f"output in {folder.relative_to(here) if folder.is_relative_to(here) else folder}"
