"""Units of times, sizes, energies, counts and rates in the spellings of programs, and conversions between them."""

import re
from collections.abc import Callable, Iterator

_SIZE, _TIME = "byte", "second"
# What is measured, the factor to its unit, and the spellings, the usual one first.
_SPELLINGS = (
    (_TIME, 1e-9, "ns nsec nsecs nanosecond nanoseconds"),
    (_TIME, 1e-6, "us usec usecs microsecond microseconds"),
    # The last two stand in published files of the schema T4.
    (_TIME, 1e-3, "ms msec msecs millisecond milliseconds milisecond miliseconds"),
    (_TIME, 1.0, "s sec secs second seconds"),
    (_TIME, 60.0, "min m mins minute minutes"),
    (_TIME, 3600.0, "h hr hrs hour hours"),
    (_TIME, 86400.0, "d day days"),
    ("joule", 1e-3, "mJ"),
    ("joule", 1.0, "J"),
    ("joule", 1e3, "kJ"),
    ("joule", 1e6, "MJ"),
    ("joule", 3600.0, "Wh"),
    ("joule", 3.6e6, "kWh"),
    ("watt", 1e-3, "mW"),
    ("watt", 1.0, "W"),
    ("watt", 1e3, "kW"),
    ("watt", 1e6, "MW"),
)
_UNITS = {word: (kind, factor) for kind, factor, words in _SPELLINGS for word in words.split()}
# Alone, these are as likely an abbreviation of something else.
_AMBIGUOUS = frozenset({"m", "h", "d", "J", "W"})
SECONDS = {word: factor for word, (kind, factor) in _UNITS.items() if kind == _TIME and word not in {"m", "d"}}
"""Units of time that a table may be in, in seconds."""

_DECIMAL, _BINARY = "kMGTPE", "KMGTPE"
_SIZES = ("B", *(f"{prefix}B" for prefix in _DECIMAL), *(f"{prefix}iB" for prefix in _BINARY))
_SIZE_WORDS = re.compile(r"(?:([kKMGTPE])(i?))?(B|[-_]?(?:[Bb]ytes?|[Bb]its?))")
_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# In a rate, a small b means bits: `Gb/s`, `Gbps`. A size of `Mb` may be either, so it is no unit here.
_BITS = re.compile(r"([kKMGTP]?)b")
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


def usual_units(unit: str) -> tuple[str, ...]:
    """Return the usual units of the same kind; none for rates and counts, and if the text is no unit."""
    if is_size(unit):
        return _SIZES
    kinds = {amount for amount, per, _ in _readings(_plain(unit)) if per == "1"}
    return tuple(words.split()[0] for kind, _, words in _SPELLINGS if kind in kinds)


def other_scales(unit: str) -> tuple[str, ...]:
    """Return units in which a program may print the same quantity in another run; none if the text is no unit."""
    unit = _plain(unit)
    if unit in _AMBIGUOUS:
        return ()
    others = usual_units(unit) if is_time(unit) else _with_other_prefixes(unit)
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
    if known := _UNITS.get(text if len(text) <= 3 else text.lower()):
        yield known
    elif match := _SIZE_WORDS.fullmatch(text):
        power = _BINARY.find(match[1].upper()) + 1 if match[1] else 0
        yield _SIZE, (1024.0 if match[2] else 1000.0) ** power / (8 if "it" in match[3] else 1)
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
