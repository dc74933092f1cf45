"""Evaluates expressions over whole columns of configurations at once.

Every operation returns its values, a mask where it failed (division by zero, the root of a negative number, ...), and a
mask where it is unknown because a parameter in it has no value. `and`, `or`, `not` and `if` follow Kleene's logic: an
unknown part matters only if the rest does not decide. Failures count only in parts that Python would have evaluated. A
rule forbids a configuration where it is false or failed, not where it is unknown.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spaces.expressions.node import Array, Node, Scope
from spaces.parameters.parameter import Value

Where: TypeAlias = Array | None
"""A mask; None if it is false everywhere."""

Computed: TypeAlias = tuple[Array, Where]
"""Values, and a mask where the operation failed."""


class Outcome(NamedTuple):
    """Values, meaningful only where they neither `failed` nor are `unknown`; these two never overlap."""

    value: Array
    failed: Where = None
    unknown: Where = None

    @property
    def known(self) -> Where:
        """The mask of known values; None if all are known."""
        missing = _either(self.failed, self.unknown)
        return None if missing is None else ~missing


Columns: TypeAlias = Mapping[int, Array]
"""Value indexes (-1: no value) by the position of the parameter; the shapes must broadcast."""


def holds(node: Node, columns: Columns) -> Array:
    """Return the mask where the condition `node` is true."""
    outcome = _outcome(node, columns)
    value = np.asarray(outcome.value, dtype=bool)
    return value if outcome.known is None else value & outcome.known


def allows(node: Node, columns: Columns) -> Array:
    """Return the mask where the condition `node` is true or unknown."""
    outcome = _outcome(node, columns)
    value = np.asarray(outcome.value, dtype=bool)
    if outcome.failed is not None:
        value = value & ~outcome.failed
    return value if outcome.unknown is None else value | outcome.unknown


def values_of(node: Node, columns: Columns, count: int) -> Array:
    """Return the values of a numeric expression as floats (count,), NaN if there is no value."""
    outcome = _outcome(node, columns)
    values = np.broadcast_to(np.asarray(outcome.value, dtype=float), (count,)).copy()
    if outcome.known is not None:
        values[~np.broadcast_to(outcome.known, (count,))] = np.nan
    return values


def value_of(node: Node, columns: Columns, scope: Scope) -> Value | None:
    """Return the value of an expression in one configuration, given as columns of one row.

    None if it is unknown or cannot be computed.
    """
    outcome = _outcome(node, columns)
    if outcome.known is not None and not bool(np.all(outcome.known)):
        return None
    found = np.asarray(outcome.value).reshape(-1)[0]
    if node.kind == "str":
        return scope.word(int(found))
    if node.kind == "float":
        return _round_off(float(found))
    return bool(found) if node.kind == "bool" else int(found)


def can_fail(node: Node) -> bool:
    """Whether the bounds of an expression's parts do not rule out that it cannot be computed."""
    return any(_itself_can_fail(part) for part in node.parts())


def _itself_can_fail(node: Node) -> bool:
    last = node.operands[-1] if node.operands else node
    own = {
        "div": last.low <= 0 <= last.high,
        "floordiv": last.low <= 0 <= last.high,
        "mod": last.low <= 0 <= last.high,
        "pow": node.kind == "float" and not math.isfinite(node.high),
        "sqrt": last.low < 0,
        "log2": last.low <= 0,
    }
    return own.get(node.op, False)


def _round_off(value: float) -> float:
    """Return a number as a person would write it: 0.01, not 0.010000000000000002."""
    return float(f"{value:.15g}")


def number(node: Node) -> Any:  # noqa: ANN401  a number, a truth value or a code, as the node says
    """Return the value of an expression over facts only: a Python number, truth value or word code.

    Raises:
        ArithmeticError: It has no value (division by zero, the root of a negative number, ...).
    """
    outcome = _outcome(node, {})
    if outcome.failed is not None and bool(np.any(outcome.failed)):
        raise ArithmeticError("it divides by zero, or takes a root or logarithm of what has none")
    return np.asarray(outcome.value).item()


def _outcome(node: Node, columns: Columns) -> Outcome:
    with np.errstate(all="ignore"):
        return _compute(node, columns)


def _compute(root: Node, columns: Columns) -> Outcome:
    """Compute each part once and free it after the last operation that needs it, since columns can be long."""
    parts = root.parts()
    last_use = {operand: place for place, part in enumerate(parts) for operand in part.operands}
    outcomes: dict[Node, Outcome] = {}
    for place, part in enumerate(parts):
        outcomes[part] = _operation(part, [outcomes[operand] for operand in part.operands], columns)
        for operand in part.operands:
            if last_use[operand] == place:
                outcomes.pop(operand, None)
    return outcomes[root]


def _operation(node: Node, outcomes: Sequence[Outcome], columns: Columns) -> Outcome:
    if node.op == "parameter":
        column = columns[node.position]
        return Outcome(node.table[column], unknown=column < 0 if node.may_be_missing else None)
    if node.op in {"constant", "fact"}:
        return Outcome(node.value)
    if node.op == "is_set":
        return Outcome(columns[node.position] >= 0)
    if node.op == "derived":
        return outcomes[0]
    if node.op in _LOGIC:
        return _LOGIC[node.op](outcomes)
    values = [outcome.value for outcome in outcomes]
    if node.exact:
        # at least one dimension: numpy turns a lone Python number into an int64 again
        values = [np.atleast_1d(np.asarray(value).astype(object)) for value in values]
    value, own_failure = _STRICT[node.op](node, values)
    failed = _either(own_failure, *(outcome.failed for outcome in outcomes))
    unknown = _either(*(outcome.unknown for outcome in outcomes))
    return Outcome(value, _without(failed, unknown), unknown)


def _either(*places: Where) -> Where:
    together: Where = None
    for place in places:
        if place is not None:
            together = place if together is None else together | place
    return together


def _both(place: Where, other: Array) -> Where:
    return None if place is None else place & other


def _without(place: Where, others: Where) -> Where:
    return place if place is None or others is None else place & ~others


def _and(outcomes: Sequence[Outcome]) -> Outcome:
    value, failed, unknown = outcomes[0]
    for other in outcomes[1:]:
        # Later operands count where this one is true; where it is unknown, they may decide as well.
        true = value if (missing := _either(failed, unknown)) is None else value & ~missing
        false = ~np.asarray(other.value) if other.known is None else ~np.asarray(other.value) & other.known
        failed = _either(failed, _both(other.failed, true))
        value = value & other.value
        unknown = _either(_both(unknown, ~false), _both(other.unknown, true))
    return Outcome(value, failed, unknown)


def _or(outcomes: Sequence[Outcome]) -> Outcome:
    return _not([_and([_not([outcome]) for outcome in outcomes])])


def _not(outcomes: Sequence[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome._replace(value=~np.asarray(outcome.value, dtype=bool))


def _if(outcomes: Sequence[Outcome]) -> Outcome:
    test, yes, no = outcomes
    true = np.asarray(test.value) if test.known is None else test.value & test.known
    false = ~np.asarray(test.value) if test.known is None else ~np.asarray(test.value) & test.known
    unknown = _either(_both(yes.unknown, true), _both(no.unknown, false))
    if test.unknown is not None:
        alike = yes.value == no.value
        for known in (yes.known, no.known):
            alike = alike if known is None else alike & known
        unknown = _either(unknown, test.unknown & ~np.asarray(alike, dtype=bool))
    failed = _either(test.failed, _both(yes.failed, true), _both(no.failed, false))
    return Outcome(np.where(test.value, yes.value, no.value), failed, unknown)


def _comparison(operation: Callable[[Any, Any], Any]) -> Callable[[Node, list[Array]], Computed]:
    def compared(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
        return np.asarray(operation(values[0], values[1])).astype(bool, copy=False), None

    return compared


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Node, list[Array]], Computed]:
    # False and True count as 0 and 1; numpy would add them as truth values
    def computed(node: Node, values: list[Array]) -> Computed:
        whole = [v + 0 if o.kind == "bool" else v for v, o in zip(values, node.operands, strict=True)]
        result = whole[0]
        for value in whole[1:]:
            result = operation(result, value)
        return result, None

    return computed


def _division(operation: Callable[[Any, Any], Any]) -> Callable[[Node, list[Array]], Computed]:
    def divided(node: Node, values: list[Array]) -> Computed:
        dividend, divisor = (v + 0 if o.kind == "bool" else v for v, o in zip(values, node.operands, strict=True))
        second = node.operands[1]
        zero: Where = None
        if second.low <= 0 <= second.high:
            zero = np.asarray(divisor == 0).astype(bool, copy=False)
            divisor = np.where(zero, 1, divisor)
        result = operation(dividend, divisor)
        return (np.asarray(result).astype(float) if node.kind == "float" else result), zero

    return divided


def _power(node: Node, values: list[Array]) -> Computed:
    base, exponent = values
    if node.kind == "int":
        return np.power(base + 0, exponent + 0), None
    result = np.power(np.asarray(base, dtype=float), np.asarray(exponent, dtype=float))
    return np.where(np.isfinite(result), result, 0.0), ~np.isfinite(result)


def _negative(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    return -(values[0] + 0), None


def _magnitude(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    return np.abs(values[0] + 0), None


def _root(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    number_ = np.asarray(values[0], dtype=float)
    return np.sqrt(np.maximum(number_, 0)), number_ < 0


def _logarithm(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    number_ = np.asarray(values[0], dtype=float)
    return np.log2(np.where(number_ > 0, number_, 1)), number_ <= 0


def _round_by(
    operation: Callable[[Any], Any], exactly: Callable[[Any], int]
) -> Callable[[Node, list[Array]], Computed]:
    of_python = np.frompyfunc(exactly, 1, 1)

    def rounded(node: Node, values: list[Array]) -> Computed:
        (value,) = values
        if node.operands[0].kind != "float":
            return value + 0, None
        if node.wide:
            return of_python(value), None
        result = operation(np.asarray(value, dtype=float))
        return (result.astype(np.int64) if node.kind == "int" else result), None

    return rounded


def _between(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    value, low, high = values
    return np.asarray((low <= value) & (value <= high)).astype(bool, copy=False), None


def _in(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    value, *elements = values
    found = value == elements[0]
    for element in elements[1:]:
        found = found | (value == element)
    return np.asarray(found).astype(bool, copy=False), None


def _in_range(node: Node, values: list[Array]) -> Computed:
    value, start, stop, step = (v + 0 for v in values)
    inside = (start <= value) & (value < stop)
    if node.operands[3].high > 1:
        inside = inside & ((value - start) % step == 0)
    return np.asarray(inside).astype(bool, copy=False), None


def _is_square(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    number_ = np.asarray(values[0])
    if number_.dtype == object:
        return np.asarray(np.frompyfunc(_is_square_of_python, 1, 1)(number_)).astype(bool), None
    root = np.rint(np.sqrt(np.maximum(number_, 0))).astype(np.int64)
    return (root * root == number_) & (number_ >= 0), None


def _is_square_of_python(value: int) -> bool:
    return value >= 0 and math.isqrt(value) ** 2 == value


def _is_power_of_two(node: Node, values: list[Array]) -> Computed:  # noqa: ARG001
    number_ = values[0] + 0
    return np.asarray((number_ > 0) & ((number_ & (number_ - 1)) == 0)).astype(bool, copy=False), None


_LOGIC: dict[str, Callable[[Sequence[Outcome]], Outcome]] = {"and": _and, "or": _or, "not": _not, "if": _if}

_STRICT: dict[str, Callable[[Node, list[Array]], Computed]] = {
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
    "sqrt": _root,
    "log2": _logarithm,
    "floor": _round_by(np.floor, math.floor),
    "ceil": _round_by(np.ceil, math.ceil),
    "is_square": _is_square,
    "is_power_of_two": _is_power_of_two,
}
