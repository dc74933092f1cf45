"""Options whose value is one of some names, which are looked up only when they are needed."""

from collections.abc import Callable, Sequence
from typing import TypedDict

import typer

from autotune.batch.script_forms import script_forms, shipped_forms


class Choice(TypedDict):
    """What such an option is declared with."""

    metavar: str
    callback: Callable[[str | None], str | None]
    autocompletion: Callable[[str], list[str]]


def choice(names: Callable[[], Sequence[str]], shown: Sequence[str] = ()) -> Choice:
    """Return the arguments of a `typer.Option` for one of `names()`; the help shows those, or `shown`."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in names():
            msg = f"{value!r} is not one of {', '.join(map(repr, names()))}."
            raise typer.BadParameter(msg)
        return value

    def complete(incomplete: str) -> list[str]:
        return [name for name in names() if name.startswith(incomplete)]

    return Choice(metavar="|".join(shown or names()), callback=check, autocompletion=complete)


SCRIPT_FORM = choice(script_forms, shown=shipped_forms())
"""The job scripts that `--script` writes."""
