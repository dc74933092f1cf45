"""Options that take one of several names, which are looked up only when needed."""

from collections.abc import Callable, Sequence
from typing import TypedDict

import typer

from autotune.batch.script_forms import script_forms, shipped_forms


class Choice(TypedDict):
    """The keyword arguments of `typer.Option` for such an option."""

    metavar: str
    callback: Callable[[str | None], str | None]
    autocompletion: Callable[[str], list[str]]


def choice(names: Callable[[], Sequence[str]], shown: Sequence[str] = ()) -> Choice:
    """Return the arguments of a `typer.Option` that takes one of `names()`.

    Args:
        names: Returns the valid names; called when a value is given.
        shown: The names that the help shows, if not all.
    """

    def check(value: str | None) -> str | None:
        if value is not None and value not in names():
            msg = f"{value!r} is not one of {', '.join(map(repr, names()))}."
            raise typer.BadParameter(msg)
        return value

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return Choice(metavar="|".join(shown or names()), callback=check, autocompletion=complete)


SCRIPT_FORM = choice(script_forms, shown=shipped_forms())
"""The forms of job script that `--script` can write."""
