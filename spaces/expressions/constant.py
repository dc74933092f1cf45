"""Expressions over facts only: bounds and defaults that depend on the machine or the workload."""

from collections.abc import Mapping

from spaces.expressions.evaluate import number
from spaces.expressions.fact import fact_symbol
from spaces.expressions.node import Scope
from spaces.expressions.syntax import parse
from spaces.expressions.text import clean
from spaces.parameters.errors import ExpressionError
from spaces.parameters.parameter import Value


def constant_value(text: str, facts: Mapping[str, Value]) -> Value:
    """Return the value of an expression over facts only.

    Raises:
        ExpressionError: The text is not an expression of the language, or has no value (it divides by zero, ...).
    """
    scope = Scope({}, {})
    for name, value in facts.items():
        scope.symbols[name] = fact_symbol(value, scope)
    node = parse(text, scope)
    try:
        value = number(node)
    except ArithmeticError as error:
        raise ExpressionError(f"this has no value: {error}", clean(text), 0, len(text)) from error
    return scope.word(value) if node.kind == "str" else value
