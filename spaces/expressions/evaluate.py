"""Computes expressions over whole columns of configurations at once.

Every operation gives its values and where it failed (division by zero, the root of a negative number, ...). A
failure makes a rule false; `and`, `or` and `if` take no notice of failures in parts that Python would not
have computed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from spaces.expressions.node import Array, Node, Scope
from spaces.parameters.parameter import Value

Failed: TypeAlias = Array | None
Outcome: TypeAlias = tuple[Array, Failed]

Columns: TypeAlias = Mapping[int, Array]
"""Value indexes (-1: no value) by the position of the parameter; the shapes must broadcast."""


def holds(node: Node, columns: Columns) -> Array:
    """Return where the condition `node` is true and could be computed."""
    with np.errstate(all="ignore"):
        value, failed = _compute(node, columns)
    value = np.asarray(value, dtype=bool)
    return value if failed is None else value & ~failed


def values_of(node: Node, columns: Columns, count: int) -> Array:
    """Return the values of a numeric expression as floats, (count,), NaN where it could not be computed."""
    with np.errstate(all="ignore"):
        value, failed = _compute(node, columns)
    values = np.broadcast_to(np.asarray(value, dtype=float), (count,)).copy()
    if failed is not None:
        values[np.broadcast_to(failed, (count,))] = np.nan
    return values


def value_of(node: Node, columns: Columns, scope: Scope) -> Value | None:
    """Return the value of an expression in one configuration, columns of one row; None where it has none.

    It has none where it needs a parameter without a value, or cannot be computed.
    """
    if any(int(columns[position][0]) < 0 for position in node.needs):
        return None
    with np.errstate(all="ignore"):
        value, failed = _compute(node, columns)
    if failed is not None and bool(np.any(failed)):
        return None
    found = np.asarray(value).reshape(-1)[0]
    if node.kind == "str":
        return scope.word(int(found))
    if node.kind == "float":
        return _rounded_off(float(found))
    return bool(found) if node.kind == "bool" else int(found)


def can_fail(node: Node) -> bool:
    """Whether the bounds of an expression's parts leave it open that it cannot be computed."""
    last = node.operands[-1] if node.operands else node
    own = {
        "div": last.low <= 0 <= last.high,
        "floordiv": last.low <= 0 <= last.high,
        "mod": last.low <= 0 <= last.high,
        "pow": node.kind == "float",
        "sqrt": last.low < 0,
        "log2": last.low <= 0,
    }
    return own.get(node.op, False) or any(can_fail(operand) for operand in node.operands)


def _rounded_off(value: float) -> float:
    """Return a number as a person would write it: 0.01, not 0.010000000000000002."""
    return float(f"{value:.15g}")


def number(node: Node) -> Any:  # noqa: ANN401  a number, a truth value or a code, as the node says
    """Return the value of an expression over facts only: a Python number, truth value or word code.

    Raises:
        ArithmeticError: it has no value (division by zero, the root of a negative number, ...).
    """
    with np.errstate(all="ignore"):
        value, failed = _compute(node, {})
    if failed is not None and bool(np.any(failed)):
        raise ArithmeticError("it divides by zero, or takes a root or logarithm of what has none")
    return np.asarray(value).item()


def _compute(node: Node, columns: Columns) -> Outcome:
    if node.op == "parameter":
        return node.table[columns[node.position]], None
    if node.op in {"constant", "fact"}:
        return node.value, None
    if node.op == "is_set":
        return columns[node.position] >= 0, None
    if node.op == "derived":
        return _compute(node.operands[0], columns)
    outcomes = [_compute(operand, columns) for operand in node.operands]
    if node.op in _LAZY:
        return _LAZY[node.op](outcomes)
    values = [value for value, _ in outcomes]
    if node.exact:
        # at least one dimension: numpy turns a lone Python number into an int64 again
        values = [np.atleast_1d(np.asarray(value).astype(object)) for value in values]
    value, own_failure = _STRICT[node.op](node, values)
    return value, _either([failed for _, failed in outcomes] + [own_failure])


def _either(failures: Sequence[Failed]) -> Failed:
    together: Failed = None
    for failed in failures:
        if failed is not None:
            together = failed if together is None else together | failed
    return together


def _and(outcomes: Sequence[Outcome]) -> Outcome:
    value, failed = outcomes[0]
    for other, other_failed in outcomes[1:]:
        if other_failed is not None:
            failed = _either([failed, value & other_failed])
        value = value & other
    return value, failed


def _or(outcomes: Sequence[Outcome]) -> Outcome:
    value, failed = outcomes[0]
    for other, other_failed in outcomes[1:]:
        if other_failed is not None:
            failed = _either([failed, ~np.asarray(value) & other_failed])
        value = value | other
    return value, failed


def _if(outcomes: Sequence[Outcome]) -> Outcome:
    (test, test_failed), (yes, yes_failed), (no, no_failed) = outcomes
    failed = test_failed
    if yes_failed is not None:
        failed = _either([failed, test & yes_failed])
    if no_failed is not None:
        failed = _either([failed, ~np.asarray(test) & no_failed])
    return np.where(test, yes, no), failed


def _comparison(operation: Callable[[Any, Any], Any]) -> Callable[[Node, list[Array]], Outcome]:
    def compared(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
        return np.asarray(operation(values[0], values[1])).astype(bool, copy=False), None

    return compared


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Node, list[Array]], Outcome]:
    # False and True count as 0 and 1; numpy would add them as truth values
    def computed(node: Node, values: list[Array]) -> Outcome:
        whole = [v + 0 if o.kind == "bool" else v for v, o in zip(values, node.operands, strict=True)]
        result = whole[0]
        for value in whole[1:]:
            result = operation(result, value)
        return result, None

    return computed


def _division(operation: Callable[[Any, Any], Any]) -> Callable[[Node, list[Array]], Outcome]:
    def divided(node: Node, values: list[Array]) -> Outcome:
        dividend, divisor = (v + 0 if o.kind == "bool" else v for v, o in zip(values, node.operands, strict=True))
        second = node.operands[1]
        zero: Failed = None
        if second.low <= 0 <= second.high:
            zero = np.asarray(divisor == 0).astype(bool, copy=False)
            divisor = np.where(zero, 1, divisor)
        result = operation(dividend, divisor)
        return (np.asarray(result).astype(float) if node.kind == "float" else result), zero

    return divided


def _power(node: Node, values: list[Array]) -> Outcome:
    base, exponent = values
    if node.kind == "int":
        return np.power(base + 0, exponent + 0), None
    result = np.power(np.asarray(base, dtype=float), np.asarray(exponent, dtype=float))
    return np.where(np.isfinite(result), result, 0.0), ~np.isfinite(result)


def _negative(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    return -(values[0] + 0), None


def _magnitude(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    return np.abs(values[0] + 0), None


def _not(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    return ~np.asarray(values[0], dtype=bool), None


def _root(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    number_ = np.asarray(values[0], dtype=float)
    return np.sqrt(np.maximum(number_, 0)), number_ < 0


def _logarithm(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    number_ = np.asarray(values[0], dtype=float)
    return np.log2(np.where(number_ > 0, number_, 1)), number_ <= 0


def _rounded(operation: Callable[[Any], Any], exactly: Callable[[Any], int]) -> Callable[[Node, list[Array]], Outcome]:
    of_python = np.frompyfunc(exactly, 1, 1)

    def rounded(node: Node, values: list[Array]) -> Outcome:
        (value,) = values
        if node.operands[0].kind != "float":
            return value + 0, None
        if node.wide:
            return of_python(value), None
        result = operation(np.asarray(value, dtype=float))
        return (result.astype(np.int64) if node.kind == "int" else result), None

    return rounded


def _between(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    value, low, high = values
    return np.asarray((low <= value) & (value <= high)).astype(bool, copy=False), None


def _in(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    value, *elements = values
    found = value == elements[0]
    for element in elements[1:]:
        found = found | (value == element)
    return np.asarray(found).astype(bool, copy=False), None


def _in_range(node: Node, values: list[Array]) -> Outcome:
    value, start, stop, step = (v + 0 for v in values)
    inside = (start <= value) & (value < stop)
    if node.operands[3].high > 1:
        inside = inside & ((value - start) % step == 0)
    return np.asarray(inside).astype(bool, copy=False), None


def _is_square(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    number_ = np.asarray(values[0])
    if number_.dtype == object:
        return np.asarray(np.frompyfunc(_is_square_of_python, 1, 1)(number_)).astype(bool), None
    root = np.rint(np.sqrt(np.maximum(number_, 0))).astype(np.int64)
    return (root * root == number_) & (number_ >= 0), None


def _is_square_of_python(value: int) -> bool:
    return value >= 0 and math.isqrt(value) ** 2 == value


def _is_power_of_two(node: Node, values: list[Array]) -> Outcome:  # noqa: ARG001
    number_ = values[0] + 0
    return np.asarray((number_ > 0) & ((number_ & (number_ - 1)) == 0)).astype(bool, copy=False), None


_LAZY: dict[str, Callable[[Sequence[Outcome]], Outcome]] = {"and": _and, "or": _or, "if": _if}

_STRICT: dict[str, Callable[[Node, list[Array]], Outcome]] = {
    "add": _arithmetic(np.add),
    "sub": _arithmetic(np.subtract),
    "mul": _arithmetic(np.multiply),
    "div": _division(np.true_divide),
    "floordiv": _division(np.floor_divide),
    "mod": _division(np.remainder),
    "pow": _power,
    "neg": _negative,
    "abs": _magnitude,
    "min": _arithmetic(np.minimum),
    "max": _arithmetic(np.maximum),
    "eq": _comparison(np.equal),
    "ne": _comparison(np.not_equal),
    "lt": _comparison(np.less),
    "le": _comparison(np.less_equal),
    "gt": _comparison(np.greater),
    "ge": _comparison(np.greater_equal),
    "between": _between,
    "in": _in,
    "in_range": _in_range,
    "not": _not,
    "sqrt": _root,
    "log2": _logarithm,
    "floor": _rounded(np.floor, math.floor),
    "ceil": _rounded(np.ceil, math.ceil),
    "is_square": _is_square,
    "is_power_of_two": _is_power_of_two,
}
