"""A problem of a study file: what is wrong, at which path, and on which line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.tomlfiles.lines import line_of


@dataclass(frozen=True)
class Problem:
    """What is wrong; `path` is that of a key (`budget.trials`), and `line` is counted from 1. Each may be unknown."""

    message: str
    path: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """As errors of a study file are written everywhere, with the line in front."""
        where = f"line {self.line}: " if self.line else ""
        first, newline, rest = self.message.partition("\n")
        return f"{where}{first}{f' @ {self.path}' if self.path else ''}{newline}{rest}"


def located(error: str, places: Mapping[str, int], constraints: Mapping[str, int]) -> Problem:
    """Read an error as it is written elsewhere: `what is wrong @ its.path`, maybe with more lines.

    `places` are the lines of the file by path, `constraints` the places of constraints in their list, by name.
    """
    first, newline, rest = error.strip().partition("\n")
    message, at, path = first.rpartition(" @ ")
    if not at:
        message, path = first, _meant(first, constraints)
    path = re.sub(r"\[(-?\d+)\]", r".\1", path)
    return Problem(f"{message}{newline}{rest}", path or None, line_of(places, path) if path else None)


def _meant(message: str, constraints: Mapping[str, int]) -> str:
    """Return the path of what a message about the space names."""
    named = re.match(r"constraint '([^']*)'", message)
    if named and named[1] in constraints:
        return f"space.constraints.{constraints[named[1]]}.rule"
    condition = re.match(r"when of (\w+):", message)
    return f"space.parameters.{condition[1]}.when" if condition else ""
