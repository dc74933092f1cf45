"""Problems of a file that a person wrote, as values: the mistake, its path and its line."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A mistake; `path` is that of a key (`budget.trials`), and `line` is counted from 1. Each may be unknown."""

    message: str
    path: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        """Return the problem as shown everywhere: the line first, then the message, the path after its first line."""
        where = f"line {self.line}: " if self.line else ""
        first, newline, rest = self.message.partition("\n")
        return f"{where}{first}{f' @ {self.path}' if self.path else ''}{newline}{rest}"


@dataclass(frozen=True)
class ConstraintProblem(Problem):
    """A problem of a constraint of a space, by name, since the space does not know where it was declared."""

    constraint: str = ""


@dataclass(frozen=True)
class ConditionProblem(Problem):
    """A problem of the condition under which a parameter of a space exists."""

    parameter: str = ""


@dataclass(frozen=True)
class ExpressionProblem(Problem):
    """A problem of an expression; `unknown` is its unknown name, if that is the problem."""

    unknown: str = ""


@dataclass(frozen=True)
class UnknownKeyProblem(Problem):
    """A key that its table does not have; its path ends with the key."""

    def __str__(self) -> str:
        """Return the problem without its path, since the message names the key and its table."""
        return str(Problem(self.message, line=self.line))


@dataclass(frozen=True)
class OptionProblem(Problem):
    """A problem of the command line: `option` is what was typed."""

    option: str = ""

    def __str__(self) -> str:
        """Return the problem with the option in front, since it has no line in a file."""
        return f"{self.option}: {Problem(self.message, self.path)}"


class ProblemsError(Exception):
    """One or more problems: `problems` holds all of them at once; `str()` shows them one per line."""

    def __init__(self, problems: str | Problem | Iterable[str | Problem]) -> None:
        given = (problems,) if isinstance(problems, str | Problem) else problems
        self.problems = tuple(Problem(one) if isinstance(one, str) else one for one in given)
        super().__init__("\n".join(map(str, self.problems)))
