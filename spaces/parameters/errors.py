"""Errors of the space: every one says what was given, the rule, and what to do."""

import difflib
import re
from collections.abc import Iterable, Sequence

from spaces.parameters.problem import ProblemsError, UnknownKeyProblem

_SHOWN_WIDTH = 76  # what is shown of a long expression around the place of the error


class SpaceError(ProblemsError, ValueError):
    """One or more mistakes in a space or a configuration."""


class ExpressionError(ValueError):
    """The text is not an expression of the language of `spaces.expressions.syntax`.

    The message shows the expression, a caret under the place, and `hint`: what is allowed there. Programs can use
    `problem`, `expression`, `start`, `end` (columns of the place), `hint`, and `unknown`, the unknown name if that is
    the problem.
    """

    def __init__(  # noqa: PLR0913, PLR0917  what is wrong and where
        self, problem: str, expression: str, start: int = 0, end: int = 0, hint: str = "", unknown: str = ""
    ) -> None:
        self.problem = problem
        self.expression = expression
        self.start = start
        self.end = max(end, start + 1)
        self.hint = hint
        self.unknown = unknown
        super().__init__(_with_caret(problem, expression, self.start, self.end, hint))

    def __reduce__(self) -> tuple[type["ExpressionError"], tuple[str, str, int, int, str, str]]:
        return (type(self), (self.problem, self.expression, self.start, self.end, self.hint, self.unknown))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" for the closest of `known`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def unknown_key(table: str, key: str, known: Iterable[str]) -> UnknownKeyProblem:
    """Return the problem of a `key` that its table does not have.

    Args:
        table: The path of the table; empty for the top of the file.
        key: The key.
        known: The keys of the table, which the message lists if none resembles `key`.
    """
    return UnknownKeyProblem(
        f"unknown key {key!r}{in_table(table)}: {near_or_known(key, known)}", f"{table}.{key}" if table else key
    )


def near_or_known(name: str, known: Iterable[str]) -> str:
    """Return "did you mean 'x'?" for the closest of `known`, or all of `known` if none is close."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"


def in_table(path: str) -> str:
    """Return " in [table]" for the path of a table; nothing for the top of the file."""
    if not path:
        return ""
    # An entry of a list has no header with its number.
    return f" in {path}" if re.search(r"\.\d+(\.|$)|\[", path) else f" in [{path}]"


def _with_caret(problem: str, expression: str, start: int, end: int, hint: str) -> str:
    first = max(0, start - _SHOWN_WIDTH // 2) if len(expression) > _SHOWN_WIDTH else 0
    shown = expression[first : first + _SHOWN_WIDTH]
    carets = "^" * max(1, min(end - start, len(shown) - (start - first)))
    lines: Sequence[str] = (problem, f"    {shown}", "    " + " " * (start - first) + carets)
    return "\n".join([*lines, hint] if hint else lines)
