"""Parameters that hold exactly the values of a table, under names that expressions can use."""

import keyword
from collections.abc import Collection, Sequence
from dataclasses import replace

from spaces import Choice, Flag, Float, Integer, Parameter, Value
from spaces.expressions.functions import FUNCTIONS
from spaces.parameters.parameter import index_of, is_number

_MOST_WORDS = 5000  # the models of the search have a feature for each word


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


def parameter_of(column: str, name: str, values: Sequence[Value | None], default: Value | None) -> Parameter:
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
        return Flag(name, default=flag, optional=optional, help=called)
    numbers = [value for value in found if isinstance(value, int | float) and is_number(value)]
    if found and len(numbers) == len(found):
        number = default if isinstance(default, int | float) else None
        if all(float(value).is_integer() and abs(value) < 2**62 for value in numbers):
            whole = tuple(sorted({int(value) for value in numbers}))
            chosen = None if number is None else int(number)
            return Integer(name, whole, default=chosen, optional=optional, help=called)
        listed = sorted({float(value) for value in numbers})
        return Float.of_values(name, listed, default=number, optional=optional, help=called)
    words = tuple(dict.fromkeys(str(value) for value in found)) or ("",)
    if len(words) > _MOST_WORDS:
        msg = (
            f"column {column!r} has {len(words)} words; a parameter has at most {_MOST_WORDS}: leave the column out of "
            f"`parameters`, or use a part of the table"
        )
        raise ValueError(msg)
    chosen_word = None if default is None else str(default)
    return Choice(name, words, default=chosen_word, optional=optional, help=called)


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
