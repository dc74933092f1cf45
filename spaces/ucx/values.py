"""Values worth trying for a variable of UCX, guessed from its syntax and its default.

The kinds of syntax are those of src/ucs/config/parser.c. The default itself is not among them, since unset means it.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from spaces.ucx.config import Variable

_UNITS_BYTES = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?", re.IGNORECASE)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z/]+)")
_KEYED = re.compile(r"comma-separated list of value or key:value pairs.* and value is: (.*?)(?:\. A value .*)?")
_WORDS = re.compile(r"[<\[]([\w|-]+)([>\]]?)")

# Ladders for sizes that are `auto`, or for thresholds without a limit (`inf`), by the variable's name.
_THRESHOLDS = ("1K", "4K", "16K", "64K", "256K", "1M", "inf")
_LADDERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # A socket buffer much smaller than a message can hang: with UCX_TCP_SNDBUF=16K and messages of 1 MiB, the server of
    # UCX 1.13.1 polls forever. So no value below 128K is proposed.
    ("*SNDBUF", ("128K", "512K", "2M", "8M")),
    ("*RCVBUF", ("128K", "512K", "2M", "8M")),
    ("*THRESH*", _THRESHOLDS),
    ("*", _THRESHOLDS[:-1]),
)
_SIZE_LIMITS_BYTES = (64, 2**30)
# Shared memory counts the bytes of a segment with 16 bits: UCX 1.13.1 stops or waits forever from 64K on.
_AT_MOST_BYTES = {"UCX_POSIX_SEG_SIZE": 2**15, "UCX_SYSV_SEG_SIZE": 2**15, "UCX_XPMEM_SEG_SIZE": 2**15}
_SIZE_FACTORS = (1 / 16, 1 / 4, 4, 16)
_COUNT_FACTORS = (1 / 4, 1 / 2, 2, 4)
_QUANTITY_FACTORS = (1 / 4, 4)


def values_of(variable: Variable, factors: Sequence[float] = ()) -> tuple[str, ...]:
    """Return values for `variable` other than its default; none if they cannot be guessed.

    Args:
        variable: UCX's description of it.
        factors: For numbers: multiples of the default; if empty, those of the variable's kind.
    """
    keyed = _KEYED.fullmatch(variable.syntax)
    syntax = keyed[1] if keyed else variable.syntax
    default = _common_value(variable.default) if keyed else variable.default
    for start, guess in _KINDS:
        if syntax.startswith(start):
            found = guess(Variable(variable.name, syntax, default, ""), tuple(factors))
            return tuple(dict.fromkeys(value for value in found if _canonical(value) != _canonical(default)))
    return ()


def size_bytes(text: str) -> float | None:
    """Return the size that `text` means in UCX's memory units ("inf" has one), or None."""
    if text.lower() == "inf":
        return float("inf")
    match = _SIZE.fullmatch(text)
    return float(match[1]) * _UNITS_BYTES[match[2].upper()] if match else None


def _common_value(keyed: str) -> str:
    """Return the single value of `intra:auto,inter:auto`; empty if the keys have different values."""
    values = {item.rpartition(":")[2] for item in keyed.split(",")}
    return values.pop() if len(values) == 1 else ""


def _canonical(text: str) -> str | float:
    word = {"yes": "y", "no": "n"}.get(text.lower(), text.lower())
    size = size_bytes(word)
    return word if size is None else size


def _words(variable: Variable, factors: tuple[float, ...]) -> list[str]:  # noqa: ARG001  the kinds share one form
    match = _WORDS.fullmatch(variable.syntax)
    if not match:
        return []
    words = match[1].split("|")
    whole = words if match[2] else words[:-1]  # UCX cuts a long syntax short, maybe within a word
    return [{"yes": "y", "no": "n"}.get(word, word) for word in whole if word]


def _sizes(variable: Variable, factors: tuple[float, ...]) -> list[str]:
    default = variable.default.lower()
    if default == "auto" or (default == "inf" and "THRESH" in variable.name):
        return list(next(ladder for pattern, ladder in _LADDERS if fnmatchcase(variable.name, pattern)))
    size = size_bytes(default)
    if not size or size == float("inf"):
        return []
    base = 2 ** (int(size).bit_length() - 1)  # 8256 is 8K and a header
    low, high = _SIZE_LIMITS_BYTES
    high = _AT_MOST_BYTES.get(variable.name, high)
    wanted = [int(base * factor) for factor in factors or _SIZE_FACTORS]
    return [_size_text(number) for number in wanted if low <= number <= high]


def _size_text(size: int) -> str:
    unit, factor = max(
        ((unit, factor) for unit, factor in _UNITS_BYTES.items() if size % factor == 0 and unit != "B"),
        key=lambda pair: pair[1],
    )
    return f"{size // factor}{unit}"


def _counts(variable: Variable, factors: tuple[float, ...]) -> list[str]:
    """Return multiples of a positive count; defaults of 0 ("off") and -1 ("as many as possible") have no multiples."""
    if not re.fullmatch(r"[1-9]\d{0,8}", variable.default):
        return []
    count = int(variable.default)
    return [str(round(count * factor)) for factor in factors or _COUNT_FACTORS if count * factor >= 1]


def _shares(variable: Variable, factors: tuple[float, ...]) -> list[str]:  # noqa: ARG001
    """Return half of a number and twice as much; a share stays below 1."""
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", variable.default) or not float(variable.default):
        return []
    number = float(variable.default)
    return [f"{number / 2:g}", f"{(1 + number) / 2 if number < 1 else 2 * number:g}"]


def _quantities(variable: Variable, factors: tuple[float, ...]) -> list[str]:
    match = _QUANTITY.fullmatch(variable.default)
    if not match or not 0 < float(match[1]) < 1e12:
        return []
    return [f"{float(match[1]) * factor:.2f}{match[2]}" for factor in factors or _QUANTITY_FACTORS]


def _orders(variable: Variable, factors: tuple[float, ...]) -> list[str]:  # noqa: ARG001
    """Return the default list with each other item moved to the front."""
    items = variable.default.split(",")
    if not all(re.fullmatch(r"[a-z]\w*(:[a-z*]\w*)?", item) for item in items):
        return []
    return [",".join([item, *(other for other in items if other != item)]) for item in items[1:]]


_KINDS: tuple[tuple[str, Callable[[Variable, tuple[float, ...]], list[str]]], ...] = (
    ("<", _words),
    ("[", _words),
    ("memory units", _sizes),
    ("unsigned integer", _counts),
    ("unsigned long", _counts),
    ("integer", _counts),
    ("floating point number", _shares),
    ("positive floating point number", _shares),
    ("time value", _quantities),
    ("bandwidth value", _quantities),
    ("comma-separated list of: [", _orders),
    ("comma-separated list of: string", _orders),
)
