"""The names in an expression, found without knowing what they mean."""

import ast

from spaces.expressions.functions import FUNCTIONS
from spaces.expressions.syntax import tree_of
from spaces.expressions.text import clean
from spaces.parameters.errors import ExpressionError, did_you_mean


def names_of(text: str) -> tuple[str, ...]:
    """Return the names of parameters, facts and derived values in an expression, each once, from left to right.

    Raises:
        ExpressionError: The text cannot be parsed.
    """
    found = [node for node in ast.walk(tree_of(text)) if isinstance(node, ast.Name) and node.id not in FUNCTIONS]
    return tuple(dict.fromkeys(node.id for node in sorted(found, key=lambda node: node.col_offset)))


def unknown_name(text: str, names: set[str]) -> ExpressionError | None:
    """Return the error about the first name in an expression that is not in `names`; None if all are known.

    Raises:
        ExpressionError: The text cannot be parsed.
    """
    name = next((name for name in names_of(text) if name not in names), None)
    if name is None:
        return None
    node = next(node for node in ast.walk(tree_of(text)) if isinstance(node, ast.Name) and node.id == name)
    hint = f"known names: {', '.join(sorted(names))}" if names else ""
    start = len(clean(text).encode()[: node.col_offset].decode(errors="ignore"))  # ast counts in bytes
    problem = f"unknown name {name!r}{did_you_mean(name, names)}"
    return ExpressionError(problem, clean(text), start, start + len(name), hint, name)
