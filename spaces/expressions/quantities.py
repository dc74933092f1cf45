"""Quantities: the numbers that constraints compute with (ranks per pool, threads of a block, bytes of a tile).

A program's authors think in them, and its run time often depends on them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from spaces.expressions.derived import DerivedValues
from spaces.expressions.evaluate import values_of
from spaces.expressions.names import names_of
from spaces.expressions.node import Array, Node, Scope, Symbol
from spaces.expressions.syntax import parse
from spaces.expressions.text import clean
from spaces.parameters.errors import ExpressionError

FloatArray = npt.NDArray[np.float64]

Columns = Mapping[str, Array]
"""Columns of values, (n,) each, by name: numbers as float64 with NaN for "no value", words as objects with None."""


def quantities(rules: Iterable[str], columns: Columns) -> dict[str, FloatArray]:
    """Return the quantities that `rules` compute from `columns`, (n,) each, by the text of the expression, parts first.

    NaN means that a column has no value, or that the expression cannot be computed. A rule that names something other
    than the columns, or compares words with impossible values, contributes nothing.
    """
    scope, indexes = _scope({name: column for name, column in columns.items() if _has_values(column)})
    places = {symbol.position: name for name, symbol in scope.symbols.items()}
    count = len(next(iter(columns.values()))) if columns else 0
    found: dict[str, FloatArray] = {}
    for rule in rules:
        try:
            root = parse(rule, scope)
        except ExpressionError:
            continue
        for node in computing_parts(root):
            text = clean(rule)[node.start : node.end]
            if text in found:
                continue
            found[text] = values_of(node, {position: indexes[places[position]] for position in node.positions}, count)
    return found


def compute_columns(
    expressions: Mapping[str, str], derived: Mapping[str, str], columns: Columns
) -> dict[str, FloatArray]:
    """Return the values of `expressions`, by name, over `columns`, (n,) each, and `derived` values.

    NaN means that an expression has no value. A name that is neither a column nor a derived value is a parameter
    without a value, which `is_set` can test. An expression that cannot be parsed, or computes a word, has no value
    anywhere.
    """
    count = len(next(iter(columns.values()))) if columns else 0
    mentioned = (name for text in (*expressions.values(), *derived.values()) for name in _names(text))
    unset = {name: np.full(count, np.nan) for name in mentioned if name not in derived}
    scope, indexes = _scope({**unset, **columns})
    places = {symbol.position: name for name, symbol in scope.symbols.items()}
    DerivedValues({name: text for name, text in derived.items() if name not in columns}).define(scope)
    found: dict[str, FloatArray] = {}
    for name, text in expressions.items():
        try:
            node = parse(text, scope)
        except ExpressionError:
            continue
        if node.is_number:
            found[name] = values_of(node, {position: indexes[places[position]] for position in node.positions}, count)
    return found


def computing_parts(root: Node) -> Iterator[Node]:
    """Yield the parts of an expression that compute a number from parameters, inner parts first."""
    for node in root.parts():
        if node.operands and node.op != "derived" and node.kind in {"int", "float"} and node.positions:
            yield node


def _scope(columns: Columns) -> tuple[Scope, dict[str, Array]]:
    """Return the symbols of the columns' names, and each column as indexes into its table, -1 for no value."""
    scope, indexes = Scope({}, {}), {}
    for position, (name, column) in enumerate(columns.items()):
        if column.dtype == object:
            words = sorted({str(value) for value in column if value is not None})
            if not words:
                continue
            place = {word: index for index, word in enumerate(words)}
            indexes[name] = np.array([-1 if value is None else place[str(value)] for value in column])
            table = np.array([*(scope.code(word) for word in words), -1])
            scope.symbols[name] = Symbol(
                "str", position=position, table=table, words=frozenset(words), may_be_missing=True
            )
            continue
        there = ~np.isnan(column)
        # A column without any value is an unknown number.
        values = np.unique(column[there]) if there.any() else np.ones(1)
        indexes[name] = np.where(there, np.searchsorted(values, column), -1)
        scope.symbols[name] = _number(values, position)
    return scope, indexes


def _has_values(column: Array) -> bool:
    return column.dtype == object or not bool(np.isnan(column).all())


def _names(text: str) -> tuple[str, ...]:
    try:
        return names_of(text)
    except ExpressionError:
        return ()


def _number(values: Array, position: int) -> Symbol:
    whole = bool((values == np.rint(values)).all()) and float(np.abs(values).max()) < 2**53
    table = np.append(values, values[0])
    if whole:
        table = table.astype(np.int64)
    low, high = table[0].item(), table[len(values) - 1].item()
    return Symbol("int" if whole else "float", low, high, position, table, may_be_missing=True)


def column_of(values: Sequence[object]) -> Array:
    """Return values (numbers, truth values, or words; None for no value) as a column.

    If any value is a word, the numbers beside it become words, too.
    """
    if all(value is None or isinstance(value, bool | int | float) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values])  # type: ignore[arg-type]  # a number: just checked
    return np.array([None if value is None else str(value) for value in values] or [], dtype=object)
