"""Counts: options of a study file that are whole numbers, or expressions for one."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator

from spaces import Value
from spaces.mention import Mention, key_of


def _count(given: object) -> object:
    if isinstance(given, str) or (isinstance(given, int) and not isinstance(given, bool) and given >= 1):
        return given
    msg = "must be a whole number from 1 up, the name of a parameter, or an expression in quotes"
    raise ValueError(msg)


Count = Annotated[int | str, BeforeValidator(_count)]
"""A whole number from 1 up, the name of a parameter, or an expression."""


def count_mentions(**options: Count | None) -> list[Mention]:
    """Return what the options mention, leaving out plain numbers. Only the count of GPUs may be 0."""
    least = {"gpus": 0}
    return [
        Mention(text, f"options.{name}", least.get(name, 1)) for name, text in options.items() if isinstance(text, str)
    ]


def evaluate_count(count: Count, values: Mapping[str, Value], unset: int = 1) -> int:
    """Return a count, given the values of the space; `unset` if it has no value."""
    return count if isinstance(count, int) else int(values.get(key_of(count), unset))


def count_expressions(**options: Count | None) -> dict[str, str]:
    """Return the options that are expressions, as a part of what makes measurements comparable."""
    return {name: text for name, text in options.items() if isinstance(text, str) and not text.isidentifier()}
