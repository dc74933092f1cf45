"""Units of times, sizes, energies, counts and rates in the spellings of programs, and conversions between them."""

import re
from collections.abc import Callable, Iterator, Mapping

SECONDS: Mapping[str, float] = {
    "s": 1.0,
    "sec": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "milliseconds": 1e-3,
    "miliseconds": 1e-3,  # spelt like this in published files of the schema T4
    "us": 1e-6,
    "microseconds": 1e-6,
    "ns": 1e-9,
    "nanoseconds": 1e-9,
    "min": 60.0,
    "h": 3600.0,
}
"""Units of time, in seconds."""

_BINARY = {f"{prefix}iB": 1024.0**power for power, prefix in enumerate("KMGTPE", start=1)}
_DECIMAL = {f"{prefix}B": 1000.0**power for power, prefix in enumerate("kMGTPE", start=1)}
FAMILIES: tuple[Mapping[str, float], ...] = (
    {"B": 1.0, "byte": 1.0, "bytes": 1.0, "KB": 1000.0, **_BINARY, **_DECIMAL},
    {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    {"mJ": 1e-3, "J": 1.0, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "kWh": 3.6e6},
    {"mW": 1e-3, "W": 1.0, "kW": 1e3, "MW": 1e6},
)
"""The units that limits may be written in; units of one family can be converted."""

_SIZE, _TIME = "byte", "second"
_KINDS = (_SIZE, _TIME, "joule", "watt")
_EXACT = {name: (kind, factor) for kind, units in zip(_KINDS, FAMILIES, strict=True) for name, factor in units.items()}
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_TIME_WORDS = re.compile(
    r"(?P<n>ns|nsecs?|nanoseconds?)|(?P<u>us|usecs?|microseconds?)|(?P<m>ms|msecs?|mill?iseconds?)|"
    r"(?P<s>s|secs?|seconds?)|(?P<min>m|mins?|minutes?)|(?P<h>h|hrs?|hours?)|(?P<d>d|days?)"
)
_OF_WORD = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE_WORDS = re.compile(r"([kKMGTP]?)(i?)[-_]?([Bb]ytes?|[Bb]its?)")
# In a rate, a small b means bits: `Gb/s`, `Gbps`. A size of `Mb` may be either, so it is no unit here.
_BITS = re.compile(r"([kKMGTP]?)b")
_TIMES = ("s", "ms", "us", "ns", "min", "h")
# Words that mean an amount a second: GFLOPS, MLUPS, GTEPS, kIOPS, Gbps.
_PER_SECOND = re.compile(r"([kKMGTP]?)((FLOP|LUP|UP|TEP|IOP|OP)S|([Ff]lop|iop)s|([QqTtFfRr])(?:PS|ps)|([Bb])ps)")
_INITIALS = {"q": "query", "t": "transaction", "f": "frame", "r": "request"}
_COUNTED = frozenset(
    (
        *("1", "atom", "atom-step", "atomstep", "batch", "cell", "edge", "element", "epoch", "event", "example"),
        *("file", "frame", "image", "img", "item", "it", "iter", "iteration", "kernel", "key", "lookup", "lup"),
        *("message", "msg", "op", "operation", "packet", "particle", "point", "query", "record", "req", "request"),
        *("row", "sample", "seq", "sequence", "step", "timestep", "tok", "token", "transaction", "update", "up"),
    )
)


def conversion(unit: str, to: str) -> Callable[[float], float] | None:
    """Return the function that converts values from one unit to another; None if they measure different things.

    A time per step and steps per time are converted, too: some programs print whichever is above 1.
    """
    unit, to = _plain(unit), _plain(to)
    if unit == to:
        return lambda value: value
    for amount, per, factor in _readings(unit):
        for other, per_other, divisor in _readings(to):
            if (amount, per) == (other, per_other):
                return lambda value, by=factor / divisor: value * by  # type: ignore[misc]
            if (amount, per) == (per_other, other):
                # A value of 0 has no inverse.
                return lambda value, by=factor * divisor: 1.0 / (value * by) if value else float("inf")  # type: ignore[misc]
    return None


def is_time(unit: str) -> bool:
    """Whether a unit is one of time."""
    return any((amount, per) == (_TIME, "1") for amount, per, _ in _readings(_plain(unit)))


def is_size(unit: str) -> bool:
    """Whether a unit is one of bytes or bits."""
    return any((amount, per) == (_SIZE, "1") for amount, per, _ in _readings(_plain(unit)))


def other_scales(unit: str) -> tuple[str, ...]:
    """Return units in which a program may print the same quantity in another run; none if the text is no unit."""
    unit = _plain(unit)
    if unit in {"m", "h", "d", "J", "W"}:  # as likely an abbreviation of something else
        return ()
    others = _TIMES if is_time(unit) else _with_other_prefixes(unit)
    return tuple(other for other in others if (convert := conversion(unit, other)) and convert(1.0) != 1.0)


def _with_other_prefixes(unit: str) -> tuple[str, ...]:
    amount, slash, per = unit.partition("/")
    prefixes = ("", "K", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti")
    if is_size(amount) or _BITS.fullmatch(amount):
        of_what = re.sub(r"^[kKMGTPE]?i?(?=[Bb])", "", amount)
        return tuple(f"{prefix}{of_what}{slash}{per}" for prefix in prefixes)
    if slash and is_time(per):
        of_what = amount[1:] if amount[:1] in _PREFIXES and _stem(amount[1:]) in _COUNTED else amount
        return tuple(f"{prefix}{of_what}/{per}" for prefix in prefixes[:6])
    if match := _PER_SECOND.fullmatch(unit):
        return tuple(f"{prefix}{match[2]}" for prefix in prefixes[:6])
    return ()


def _plain(unit: str) -> str:
    """Return a unit without what only typography adds."""
    unit = unit.strip().replace("\N{MICRO SIGN}", "u").replace("\N{GREEK SMALL LETTER MU}", "u")
    return re.sub(r"\s*(?:/|\bper\b)\s*", "/", unit)


def _readings(unit: str) -> Iterator[tuple[str, str, float]]:
    """Yield what a unit may mean: what is measured, per what, and the factor to the unit of that kind."""
    if match := _PER_SECOND.fullmatch(unit):
        of_what = next(part for part in match.groups()[2:] if part)
        counted = _INITIALS.get(of_what.lower(), of_what)
        yield from ((kind, _TIME, factor) for kind, factor in _amounts(f"{match[1]}{counted}", in_rate=True))
        return
    amount, slash, per = unit.partition("/")
    if not slash:
        yield from ((kind, "1", factor) for kind, factor in _amounts(amount))
        return
    for per_kind, divisor in _amounts(per):
        for kind, factor in _amounts(amount, in_rate=True):
            if kind == per_kind == _TIME:
                # Simulated time a day, or hours a simulated nanosecond.
                simulated = (kind, "simulated") if factor > divisor else ("simulated", per_kind)
                yield *simulated, factor / divisor
            else:
                yield kind, per_kind, factor / divisor


def _amounts(text: str, *, in_rate: bool = False) -> Iterator[tuple[str, float]]:
    """Yield what an amount may measure, with its factor: `katom-step` is a word of its own, or 1000 `atom-step`."""
    lower = text if len(text) <= 3 else text.lower()
    if text in _EXACT:
        yield _EXACT[text]
    elif (match := _TIME_WORDS.fullmatch(lower)) and match.lastgroup:
        yield _TIME, _OF_WORD[match.lastgroup]
    elif match := _SIZE_WORDS.fullmatch(text):
        power = "kMGTP".find(match[1].replace("K", "k")) + 1 if match[1] else 0
        yield _SIZE, (1024.0 if match[2] else 1000.0) ** power / (1 if "yte" in match[3] else 8)
    elif in_rate and (match := _BITS.fullmatch(text)):
        yield _SIZE, _PREFIXES[match[1]] / 8
    else:
        yield from _counts(text)


def _counts(text: str) -> Iterator[tuple[str, float]]:
    names = [(text or "1", 1.0)]
    if text[:1] in _PREFIXES and text[1:2].isalpha():
        names.append((text[1:], _PREFIXES[text[:1]]))
    for name, factor in names:
        yield _stem(name), factor
    for name, factor in names:
        if _stem(name) in _COUNTED:
            yield "1", factor
            return


def _stem(word: str) -> str:
    lower = word.lower()
    return lower[:-1] if lower.endswith("s") and len(lower) > 2 else lower
