"""The checked form of an expression: a tree with the type and the bounds of every part."""

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Kind: TypeAlias = Literal["int", "float", "bool", "str"]
Array: TypeAlias = npt.NDArray[Any]

NARROW = 2**62  # whole numbers that stay below it in magnitude are computed in int64, others as Python integers

_EXACT_IN_FLOAT = 2**53


@dataclass(slots=True, eq=False)  # not frozen, for speed: never changed once its expression has been read
class Node:
    """One operation of an expression.

    `low` and `high` bound the value of a number. `positions` are those of the parameters that it mentions. `table`
    holds a parameter's values by index, followed by a filler for index -1, which is possible if it `may_be_missing`.
    Words are computed as codes; `words` are the possible ones. `name` is that of a parameter, fact or derived value;
    `start` and `end` are columns in the text. An `exact` operation needs Python's numbers, since int64 and floats would
    not be exact.

    Nodes are shared: by the two comparisons of `a < b < c`, and by all expressions that mention the same derived value.
    Walk over an expression with `parts`, or the work may double at each level.
    """

    op: str
    kind: Kind
    operands: tuple["Node", ...] = ()
    low: float = 0
    high: float = 0
    value: Any = None
    position: int = -1
    table: Array = field(default_factory=lambda: _NO_TABLE)
    words: frozenset[str] = frozenset()
    positions: frozenset[int] = frozenset()
    may_be_missing: bool = False
    name: str = ""
    start: int = 0
    end: int = 0
    exact: bool = field(init=False)
    order: tuple["Node", ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        self.exact = self._needs_python_numbers()

    def parts(self) -> tuple["Node", ...]:
        """Return every node of the expression once, operands before the operations that use them, this node last."""
        if not self.order:
            self.order = _operands_first(self)
        return (*self.order, self)

    @property
    def wide(self) -> bool:
        """Whether int64 could overflow here."""
        return self.kind == "int" and not (self.low >= -NARROW and self.high <= NARROW)

    @property
    def beyond_float(self) -> bool:
        """Whether a float could not hold the value exactly."""
        return self.kind == "int" and max(abs(self.low), abs(self.high)) > _EXACT_IN_FLOAT

    def _needs_python_numbers(self) -> bool:
        """Whether int64 could overflow, or a float operand would round a large whole number."""
        if self.wide or any(operand.wide for operand in self.operands):
            return True
        meets_float = self.kind == "float" or any(operand.kind == "float" for operand in self.operands)
        return meets_float and any(operand.beyond_float for operand in self.operands)

    @property
    def is_number(self) -> bool:
        """Whether the value can be computed with; as in Python, False and True count as 0 and 1."""
        return self.kind != "str"


_NO_TABLE: Array = np.empty(0)


def _operands_first(root: Node) -> tuple[Node, ...]:
    ordered: dict[Node, None] = {}
    waiting = [*reversed(root.operands)]
    while waiting:
        node = waiting[-1]
        missing = [operand for operand in node.operands if operand not in ordered]
        if missing:
            waiting += reversed(missing)
            continue
        ordered[waiting.pop()] = None
    return tuple(ordered)


@dataclass(frozen=True)
class Symbol:
    """The meaning of a name: a parameter (`position` >= 0, with its `table`), or a fact (with its `value`).

    A derived value has the `node` of its expression.
    """

    kind: Kind
    low: float = 0
    high: float = 0
    position: int = -1
    table: Array = field(default_factory=lambda: _NO_TABLE)
    words: frozenset[str] = frozenset()
    value: Any = None
    may_be_missing: bool = False
    node: Node | None = None


@dataclass(frozen=True)
class Scope:
    """The names that an expression may use. `codes` gives every word a number; new words are added to it."""

    symbols: dict[str, Symbol]
    codes: dict[str, int]

    def code(self, word: str) -> int:
        """Return the number that stands for `word` in computations."""
        return self.codes.setdefault(word, len(self.codes))

    def word(self, code: int) -> str:
        """Return the word of a code."""
        return next(word for word, its in self.codes.items() if its == code)


def constant(symbol: Symbol) -> Node:
    """Return the node of a known value."""
    return Node("constant", symbol.kind, (), symbol.low, symbol.high, value=symbol.value, words=symbol.words)


def combine(op: str, kind: Kind, operands: tuple[Node, ...], interval: tuple[float, float]) -> Node:
    """Return the node of an operation whose value lies in `interval`."""
    low, high = interval
    positions = frozenset[int]().union(*(operand.positions for operand in operands))
    return Node(op, kind, operands, low, high, positions=positions)
