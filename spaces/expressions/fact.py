"""Facts: names with fixed values, for rules and for bounds."""

import numpy as np

from spaces.expressions.node import Scope, Symbol
from spaces.parameters.parameter import Value


def fact_symbol(value: Value, scope: Scope) -> Symbol:
    """Return the symbol of a fact's name in expressions."""
    if isinstance(value, bool):
        return Symbol("bool", 0, 1, value=np.bool_(value))
    if isinstance(value, str):
        return Symbol("str", words=frozenset({value}), value=np.int64(scope.code(value)))
    if isinstance(value, int):
        return Symbol("int", value, value, value=_python_or_numpy(value))
    return Symbol("float", value, value, value=np.float64(value))


def _python_or_numpy(value: int) -> object:
    return np.int64(value) if value.bit_length() < 63 else value
