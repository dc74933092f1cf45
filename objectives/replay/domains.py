"""Parameters that hold exactly the values of a table, under names that expressions can use.

Numbers that are not whole become the coarsest even or logarithmic grid that contains all of them, which keeps their
order. If no grid of up to about a thousand points does, they become words.
"""

import keyword
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

from spaces import Choice, Flag, Float, Integer, Parameter, Value
from spaces.expressions.functions import FUNCTIONS
from spaces.parameters.parameter import index_of

_MOST_POINTS = 1001
_MOST_WORDS = 5000  # the models of the search have a feature for each word


@dataclass(frozen=True)
class Column:
    """A parameter for a table's column; `as_words` says that its numbers became words."""

    parameter: Parameter
    as_words: bool = False


def usable_names(names: Sequence[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a name for each of `names` that rules can use: letters, digits and `_`, and none of `taken`."""
    found: dict[str, str] = {}
    for name in names:
        changed = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name) or "_"
        if not changed.isidentifier():
            changed = f"_{changed}" if f"_{changed}".isidentifier() else f"p{len(found)}"
        refused = {*taken, *FUNCTIONS, *found.values(), *(other for other in names if other != name)}
        while changed in refused or keyword.iskeyword(changed):
            changed += "_"
        found[name] = changed
    return found


def parameter_of(column: str, name: str, values: Sequence[Value | None], default: Value | None) -> Column:
    """Return the parameter called `name` with the values of a column; it may be unset if None is among them.

    Raises:
        ValueError: The column has too many different words.
    """
    given = list(dict.fromkeys((type(value), value) for value in values if value is not None))
    found = [value for _, value in given]
    optional = len(found) < len({*values}) and None in values
    called = f"column {column!r} of the table" if column != name else ""
    if found and all(isinstance(value, bool) for value in found):
        flag = default if isinstance(default, bool) else None
        return Column(Flag(name, default=flag, optional=optional, help=called))
    numbers = [value for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
    if found and len(numbers) == len(found):
        number = default if isinstance(default, int | float) else None
        if all(float(value).is_integer() and abs(value) < 2**62 for value in numbers):
            whole = tuple(sorted({int(value) for value in numbers}))
            chosen = None if number is None else int(number)
            return Column(Integer(name, whole, default=chosen, optional=optional, help=called))
        grid = _grid(
            name, sorted({float(value) for value in numbers}), optional=optional, called=called, default=number
        )
        if grid is not None:
            return Column(grid)
    words = tuple(dict.fromkeys(str(value) for value in found)) or ("",)
    if len(words) > _MOST_WORDS:
        msg = (
            f"column {column!r} has {len(words)} words, or numbers on no common grid; a parameter has at most "
            f"{_MOST_WORDS}: leave the column out of `parameters`, or use a part of the table"
        )
        raise ValueError(msg)
    chosen_word = None if default is None else str(default)
    choice = Choice(name, words, default=chosen_word, optional=optional, help=called)
    return Column(choice, as_words=bool(numbers))


def with_default(parameter: Parameter, default: Value | None) -> Parameter:
    """Return the parameter with another default; None: unset.

    Raises:
        ValueError: It does not have this value.
    """
    own = value_of(parameter, default)
    changed: Parameter = replace(parameter, default=own)  # type: ignore[arg-type]  # checked when it is made
    return changed


def value_of(parameter: Parameter, value: Value | None) -> Value | None:
    """Return a table's value in the type of the parameter.

    Raises:
        ValueError: The parameter does not have this value.
    """
    if value is None:
        return None
    for form in (value, int(value) if isinstance(value, float) and value.is_integer() else value, str(value)):
        place = index_of(parameter, form)
        if place is not None:
            return parameter.values[place]
    msg = f"{parameter.name} is never {value!r}"
    raise ValueError(msg)


def _grid(name: str, values: Sequence[float], *, optional: bool, called: str, default: float | None) -> Float | None:
    """Return the coarsest grid that holds all values (n >= 2, increasing); None if no small grid does."""
    if len(values) < 2:
        return None
    grids = [(points, log) for points, log in ((_log_points(values), True), (_even_points(values), False)) if points]
    for points, log in sorted(grids):
        grid = Float(name, values[0], values[-1], log, points, optional=optional, help=called)
        if all(index_of(grid, value) is not None for value in values):
            return Float(name, values[0], values[-1], log, points, default=default, optional=optional, help=called)
    return None


def _even_points(values: Sequence[float]) -> int | None:
    first, *others = [Fraction(repr(value)) for value in values]
    step = Fraction(0)
    for other in others:
        step = _greatest_common_divisor(step, other - first)
    points = (others[-1] - first) / step + 1
    return int(points) if points <= _MOST_POINTS else None


def _greatest_common_divisor(one: Fraction, other: Fraction) -> Fraction:
    """Return the largest number that divides both."""
    return Fraction(
        math.gcd(one.numerator * other.denominator, other.numerator * one.denominator),
        one.denominator * other.denominator,
    )


def _log_points(values: Sequence[float]) -> int | None:
    """Return the points of the logarithmic grid whose step is the smallest ratio of neighbours; None below 0."""
    if values[0] <= 0.0:
        return None
    logs = [math.log(value) for value in values]
    least = min(after - before for before, after in pairwise(logs))
    points = round((logs[-1] - logs[0]) / least) + 1
    return points if 2 <= points <= _MOST_POINTS else None
