"""Interval arithmetic over Python numbers: bounds on the value of an operation.

It rules out overflow when an expression is parsed instead of when it is computed (Moore, Interval Analysis, 1966).
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

Interval: TypeAlias = tuple[float, float]

UNBOUNDED: Interval = (-math.inf, math.inf)


def of_operation(op: str, intervals: Sequence[Interval], whole: bool) -> Interval:
    """Return bounds of the value of `op` given those of its operands, which are all whole numbers if `whole`."""
    try:
        bounds = _RULES[op](intervals, whole)
    except OverflowError:
        return UNBOUNDED
    return UNBOUNDED if any(math.isnan(bound) for bound in bounds if isinstance(bound, float)) else bounds


def hull(intervals: Sequence[Interval]) -> Interval:
    """Return the smallest interval that contains all of `intervals`."""
    return min(low for low, _ in intervals), max(high for _, high in intervals)


def _add(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001  the rules share one form
    return sum(low for low, _ in intervals), sum(high for _, high in intervals)


def _subtract(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    (a, b), (c, d) = intervals
    return a - d, b - c


def _multiply(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    bounds = intervals[0]
    for other in intervals[1:]:
        corners = [x * y for x in bounds for y in other]
        bounds = (min(corners), max(corners))
    return bounds


def _divide(intervals: Sequence[Interval], whole: bool) -> Interval:
    (a, b), (c, d) = intervals
    if c > 0 or d < 0:
        corners = [x / y for x in (a, b) for y in (c, d)]
        return min(corners), max(corners)
    # the divisor may be zero; a whole one that is not is at least 1 in magnitude
    reach = float(max(abs(a), abs(b)))
    return (-reach, reach) if whole else UNBOUNDED


def _floor_divide(intervals: Sequence[Interval], whole: bool) -> Interval:
    (a, b), (c, d) = intervals
    if whole:
        if c > 0 or d < 0:
            corners = [x // y for x in (a, b) for y in (c, d)]
            return min(corners), max(corners)
        reach = max(abs(a), abs(b))
        return -reach, reach
    low, high = _divide(intervals, whole)
    return low - 1, high


def _modulo(intervals: Sequence[Interval], whole: bool) -> Interval:
    (c, d) = intervals[1]
    margin = 1 if whole else 0
    return min(0, c + margin), max(0, d - margin)


def _power(intervals: Sequence[Interval], whole: bool) -> Interval:
    (a, b), (least, exponent) = intervals
    if not whole:
        return _positive_power(a, b, least, exponent) if a > 0 or (a == 0 and least >= 0) else UNBOUNDED
    reach = max(1, max(abs(a), abs(b)) ** max(0, exponent))
    return (0 if a >= 0 else -reach), reach


def _positive_power(a: float, b: float, c: float, d: float) -> Interval:
    """Return bounds of the powers of numbers from a to b with exponents from c to d, using monotonicity in both."""
    try:
        corners = [float(x) ** float(y) for x in (a, b) for y in (c, d)]
    except OverflowError:
        return UNBOUNDED
    return min(corners) * (1 - 1e-12), max(corners) * (1 + 1e-12)


def _negate(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    ((a, b),) = intervals
    return -b, -a


def _magnitude(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    ((a, b),) = intervals
    return (0 if a <= 0 <= b else min(abs(a), abs(b))), max(abs(a), abs(b))


def _least(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    return min(low for low, _ in intervals), min(high for _, high in intervals)


def _greatest(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    return max(low for low, _ in intervals), max(high for _, high in intervals)


def _root(intervals: Sequence[Interval], whole: bool) -> Interval:  # noqa: ARG001
    ((a, b),) = intervals
    return math.sqrt(max(a, 0)) * (1 - 1e-15), math.sqrt(max(b, 0)) * (1 + 1e-15)


def _logarithm(intervals: Sequence[Interval], whole: bool) -> Interval:
    ((a, b),) = intervals
    least = 1 if whole else 5e-324  # a whole number that has a logarithm is at least 1
    return math.log2(max(a, least)) - 1e-9, math.log2(max(b, least)) + 1e-9


_RULES: dict[str, Callable[[Sequence[Interval], bool], Interval]] = {
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "div": _divide,
    "floordiv": _floor_divide,
    "mod": _modulo,
    "pow": _power,
    "neg": _negate,
    "abs": _magnitude,
    "min": _least,
    "max": _greatest,
    "sqrt": _root,
    "log2": _logarithm,
}
