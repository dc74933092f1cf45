"""A constraint by a list: exactly the listed combinations of values, as a table of measurements has them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from spaces.parameters.constraint import Constraint
from spaces.parameters.parameter import Value

NOT_SET = -1
"""Stands in a row for a parameter without a value."""


@dataclass(frozen=True)
class Listed(Constraint):
    """Allows only the listed combinations of `parameters`; `rule` says so in words.

    `columns` holds the values of each parameter that occur, `rows` a combination as indexes into them. Unlike a rule it
    also restricts parameters without a value, since a combination may list "no value".
    """

    parameters: tuple[str, ...] = ()
    columns: tuple[tuple[Value, ...], ...] = ()
    rows: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(
        cls, name: str, parameters: Sequence[str], combinations: Iterable[Sequence[Value | None]], reason: str = ""
    ) -> Self:
        """Return the constraint for combinations, each with a value (None: no value) for every parameter."""
        places: list[dict[Value, int]] = [{} for _ in parameters]
        rows = tuple(
            dict.fromkeys(
                tuple(
                    NOT_SET if value is None else known.setdefault(value, len(known))
                    for value, known in zip(combination, places, strict=True)
                )
                for combination in combinations
            )
        )
        rule = f"({', '.join(parameters)}) is one of {len(rows)} listed combinations"
        return cls(name, rule, reason, tuple(parameters), tuple(tuple(known) for known in places), rows)
