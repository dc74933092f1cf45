"""The language of rules: a small, safe part of Python's expressions.

| what | how |
|---|---|
| numbers, words, truth | `48`, `0.5`, `"ucx"`, `True`; parameters and facts by their names |
| arithmetic | `+ - * / // % **` and parentheses, as in Python; exponents up to 64 |
| comparison | `== != < <= > >=`, also chained: `1 <= threads <= cores` |
| logic | `and`, `or`, `not`; `a if condition else b` |
| membership | `np in (1, 2)`, `np not in [3, 5]`, `np in range(1, 49)` (not 49), `between(np, 1, 48)` (also 48) |
| functions | `is_set min max abs sqrt log2 floor ceil divides(a, b) is_square is_power_of_two` |

The text is parsed with `ast` and checked against this list; nothing of it is ever executed. Types and bounds
are checked when a rule is read: a word is never compared with a number, a choice never with a word that it
cannot be, and whole numbers are exact however large they become (up to 2**256).
"""

import ast
import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from spaces.expressions import bounds
from spaces.expressions.fact import fact_symbol
from spaces.expressions.functions import ARITIES, FUNCTIONS
from spaces.expressions.node import Kind, Node, Scope, combine, constant
from spaces.expressions.text import clean, remark_in
from spaces.parameters.errors import ExpressionError, did_you_mean

MAX_LENGTH = 2000  # characters
MAX_DEPTH = 60  # nested operations
MAX_OPERATIONS = 500  # also those of the derived values that are mentioned
MAX_EXPONENT = 64
MAX_BITS = 256  # of whole numbers on the way

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
}
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
_INSTEAD: dict[type[ast.AST], str] = {
    ast.BitAnd: "use `and`",
    ast.BitOr: "use `or`",
    ast.Invert: "use `not`",
    ast.BitXor: "use ** for powers, != for exclusive or",
    ast.Is: "use ==",
    ast.IsNot: "use !=",
}
_ALLOWED = "allowed: numbers, words, names, + - * / // % **, comparisons, and/or/not, in, if/else, " + ", ".join(
    FUNCTIONS
)


def parse_condition(text: str, scope: Scope) -> Node:
    """Return the checked tree of a rule, which must be true or false.

    Raises:
        ExpressionError: The text is not an expression of the language, or is not a condition.
    """
    node = parse(text, scope)
    if node.kind != "bool":
        hint = "compare it with something, e.g. `... == 0`" if node.kind != "str" else "compare it with =="
        raise ExpressionError(f"a rule must be true or false; this is {_a(node.kind)}", clean(text), 0, len(text), hint)
    return node


def parse(text: str, scope: Scope) -> Node:
    """Return the checked tree of an expression.

    Raises:
        ExpressionError: The text is not an expression of the language.
    """
    return _Reader(clean(text), scope).read()


def tree_of(text: str) -> ast.expr:
    """Return Python's unchecked tree of an expression.

    Raises:
        ExpressionError: The text is not Python.
    """
    return _Reader(clean(text), Scope({}, {})).tree()


class _Reader:
    """Parses one expression: holds its text and scope, and turns `ast` nodes into checked ones."""

    def __init__(self, text: str, scope: Scope) -> None:
        self.text = text
        self.scope = scope

    def read(self) -> Node:
        if not self.text:
            raise ExpressionError("the expression is empty", self.text, hint=_ALLOWED)
        node = self.node(self.tree(), 0)
        operations = sum(bool(part.operands) for part in node.parts())
        if operations > MAX_OPERATIONS:
            problem = f"this takes {operations} operations, with those of its derived values; at most {MAX_OPERATIONS}"
            raise self.fail(f"{problem} are allowed", node)
        return node

    def tree(self) -> ast.expr:
        if len(self.text) > MAX_LENGTH:
            problem = f"the expression has {len(self.text)} characters; at most {MAX_LENGTH} are allowed"
            raise ExpressionError(problem, self.text)
        remark = remark_in(self.text)
        if remark is not None:
            problem = "a remark (#) has no place in an expression"
            raise ExpressionError(problem, self.text, remark, hint="write it into the study file, above")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # remarks of Python's on style are not about this language
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            start = max(0, (error.offset or 1) - 1)
            raise ExpressionError(f"cannot read this: {error.msg}", self.text, start, hint=_ALLOWED) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError(f"cannot read this: {error}", self.text, hint=_ALLOWED) from None

    def fail(self, problem: str, at: ast.AST | Node, hint: str = "", unknown: str = "") -> ExpressionError:
        start, end = (at.start, at.end) if isinstance(at, Node) else self.place(at)
        return ExpressionError(problem, self.text, start, end, hint, unknown)

    def place(self, tree: ast.AST) -> tuple[int, int]:
        start, end = getattr(tree, "col_offset", 0), getattr(tree, "end_col_offset", 0) or 0
        if self.text.isascii():
            return start, end
        encoded = self.text.encode(errors="replace")  # ast counts in bytes
        return len(encoded[:start].decode(errors="ignore")), len(encoded[:end].decode(errors="ignore"))

    def node(self, tree: ast.AST, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.fail(f"nested more than {MAX_DEPTH} deep", tree, "split it into several constraints")
        readers: dict[type[ast.AST], Callable[[Any, int], Node]] = {
            ast.Constant: self.constant,
            ast.Name: self.name,
            ast.UnaryOp: self.unary,
            ast.BinOp: self.binary,
            ast.BoolOp: self.logic,
            ast.Compare: self.comparison,
            ast.IfExp: self.conditional,
            ast.Call: self.call,
        }
        reader = readers.get(type(tree))
        if reader is None:
            what = type(tree).__name__.lower()
            raise self.fail(f"{what} is not part of the language of rules", tree, _ALLOWED)
        node = reader(tree, depth + 1)
        node.start, node.end = self.place(tree)
        return node

    def constant(self, tree: ast.Constant, depth: int) -> Node:  # noqa: ARG002  the readers share one form
        value = tree.value
        if not isinstance(value, bool | int | float | str):
            raise self.fail(f"{value!r} is not a value here", tree, 'values: 48, 0.5, "word", True, False')
        if isinstance(value, float) and not math.isfinite(value):
            raise self.fail("this number is too large", tree)
        if isinstance(value, int) and value.bit_length() > MAX_BITS:
            raise self.fail(f"this number is larger than 2**{MAX_BITS}", tree)
        return constant(fact_symbol(value, self.scope))

    def name(self, tree: ast.Name, depth: int) -> Node:  # noqa: ARG002
        symbol = self.scope.symbols.get(tree.id)
        if symbol is None:
            raise self.unknown_name(tree)
        if symbol.node is not None:
            return replace(
                combine("derived", symbol.kind, (symbol.node,), (symbol.low, symbol.high)),
                name=tree.id,
                words=symbol.words,
            )
        if symbol.position < 0:
            return replace(constant(symbol), op="fact", name=tree.id)
        position = frozenset({symbol.position})
        return Node(
            "parameter",
            symbol.kind,
            (),
            symbol.low,
            symbol.high,
            position=symbol.position,
            name=tree.id,
            table=symbol.table,
            words=symbol.words,
            may_be_missing=symbol.may_be_missing,
            positions=position,
        )

    def unknown_name(self, tree: ast.Name) -> ExpressionError:
        if tree.id in FUNCTIONS:
            return self.fail(f"{tree.id} is a function", tree, FUNCTIONS[tree.id])
        known = sorted(self.scope.symbols)
        hint = f"known names: {', '.join(known)}" if known else "there are no names to use here, only numbers"
        return self.fail(f"unknown name {tree.id!r}{did_you_mean(tree.id, known)}", tree, hint, tree.id)

    def unary(self, tree: ast.UnaryOp, depth: int) -> Node:
        operand = self.node(tree.operand, depth)
        if isinstance(tree.op, ast.Not):
            self.want_condition(operand, "`not`")
            return combine("not", "bool", (operand,), (0, 1))
        if isinstance(tree.op, ast.USub):
            return self.arithmetic("neg", (operand,), tree)
        if isinstance(tree.op, ast.UAdd):
            self.want_number(operand, "+")
            return operand
        raise self.fail("~ is not part of the language of rules", tree, _INSTEAD[ast.Invert])

    def binary(self, tree: ast.BinOp, depth: int) -> Node:
        op = _BINARY.get(type(tree.op))
        operands = (self.node(tree.left, depth), self.node(tree.right, depth))
        if op is None:
            what = type(tree.op).__name__.lower()
            raise self.fail(f"{what} is not part of the language of rules", tree, _INSTEAD.get(type(tree.op), _ALLOWED))
        return self.power(operands, tree) if op == "pow" else self.arithmetic(op, operands, tree)

    def arithmetic(self, op: str, operands: tuple[Node, ...], tree: ast.AST) -> Node:
        for operand in operands:
            self.want_number(operand, "arithmetic")
        whole = all(operand.kind != "float" for operand in operands)
        kind: Kind = "int" if whole and op not in {"div", "sqrt", "log2"} else "float"
        return self.bounded(op, kind, operands, tree, whole=whole)

    def bounded(self, op: str, kind: Kind, operands: tuple[Node, ...], tree: ast.AST, *, whole: bool) -> Node:
        low, high = bounds.of_operation(op, [(operand.low, operand.high) for operand in operands], whole)
        if kind == "int" and not max(abs(low), abs(high)) < 2**MAX_BITS:
            raise self.fail(f"this can become larger than 2**{MAX_BITS}", tree)
        return combine(op, kind, operands, (low, high))

    def power(self, operands: tuple[Node, ...], tree: ast.BinOp) -> Node:
        for operand in operands:
            self.want_number(operand, "arithmetic")
        base, exponent = operands
        if not max(abs(exponent.low), abs(exponent.high)) <= MAX_EXPONENT:
            raise self.fail(f"the exponent can be larger than {MAX_EXPONENT}", exponent)
        whole = base.kind != "float" and exponent.kind != "float" and exponent.low >= 0
        return self.bounded("pow", "int" if whole else "float", operands, tree, whole=whole)

    def logic(self, tree: ast.BoolOp, depth: int) -> Node:
        op = "and" if isinstance(tree.op, ast.And) else "or"
        operands = tuple(self.node(value, depth) for value in tree.values)
        for operand in operands:
            self.want_condition(operand, f"`{op}`")
        return combine(op, "bool", operands, (0, 1))

    def conditional(self, tree: ast.IfExp, depth: int) -> Node:
        test, yes, no = (self.node(part, depth) for part in (tree.test, tree.body, tree.orelse))
        self.want_condition(test, "`if`")
        if (yes.kind == "str") != (no.kind == "str"):
            raise self.fail(f"one branch is {_a(yes.kind)}, the other {_a(no.kind)}", tree)
        kinds = {yes.kind, no.kind}
        kind: Kind = yes.kind if len(kinds) == 1 else "float" if "float" in kinds else "int"
        node = combine("if", kind, (test, yes, no), bounds.hull([(yes.low, yes.high), (no.low, no.high)]))
        return replace(node, words=yes.words | no.words)

    def comparison(self, tree: ast.Compare, depth: int) -> Node:
        left: Node | None = self.node(tree.left, depth)
        parts = []
        for op, side in zip(tree.ops, tree.comparators, strict=True):
            if left is None:
                raise self.fail("nothing stands after the list of `in`", side, "put the rest behind `and`")
            part, left = self.compare(left, op, side, depth)
            parts.append(part)
        return parts[0] if len(parts) == 1 else combine("and", "bool", tuple(parts), (0, 1))

    def compare(self, left: Node, op: ast.cmpop, tree: ast.expr, depth: int) -> tuple[Node, Node | None]:
        """Return a comparison and its right side, which the next one of a chain shares; None for a list of values."""
        if isinstance(op, ast.In | ast.NotIn):
            inside = self.membership(left, tree, depth)
            return (inside if isinstance(op, ast.In) else combine("not", "bool", (inside,), (0, 1))), None
        name = _COMPARISONS.get(type(op))
        if name is None:
            raise self.fail("`is` is not part of the language of rules", tree, _INSTEAD[type(op)])
        right = self.node(tree, depth)
        return self.compared(name, left, right), right

    def compared(self, name: str, left: Node, right: Node) -> Node:
        if (left.kind == "str") != (right.kind == "str"):
            word, other = (left, right) if left.kind == "str" else (right, left)
            hint = 'words stand in quotes: "48" is a word, 48 a number'
            raise self.fail(f"compares {_a(word.kind)} with {_a(other.kind)}", right, hint)
        if left.kind == "str":
            if name not in {"eq", "ne"}:
                raise self.fail("words have no order", right, "compare words with ==, != or in")
            self.want_possible_word(left, right)
            self.want_possible_word(right, left)
        return combine(name, "bool", (left, right), (0, 1))

    def want_possible_word(self, word: Node, other: Node) -> None:
        if word.op == "constant" and other.op in {"parameter", "derived"} and not word.words <= other.words:
            (given,) = word.words
            known = sorted(other.words)
            hint = "its values: " + ", ".join(repr(value) for value in known)
            name = self.text[other.start : other.end]
            raise self.fail(f"{name} is never {given!r}{did_you_mean(given, known)}", word, hint)

    def membership(self, left: Node, tree: ast.expr, depth: int) -> Node:
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "range":
            return self.in_range(left, tree, depth)
        if not isinstance(tree, ast.Tuple | ast.List | ast.Set) or not tree.elts:
            hint = "`in` takes (1, 2, 4) or range(1, 49); to include both ends use between(x, 1, 48)"
            raise self.fail("`in` needs a list of values", tree, hint)
        elements = tuple(self.node(element, depth) for element in tree.elts)
        for element in elements:
            self.compared("eq", left, element)  # checks that the two can be equal at all
        return combine("in", "bool", (left, *elements), (0, 1))

    def in_range(self, left: Node, tree: ast.Call, depth: int) -> Node:
        self.want_number(left, "range")
        return combine("in_range", "bool", (left, *self.range_arguments(tree, depth)), (0, 1))

    def range_arguments(self, tree: ast.Call, depth: int) -> tuple[Node, Node, Node]:
        arguments = self.arguments("range", tree, depth)
        for argument in arguments:
            self.want_whole(argument, "range")
        start, step = constant(fact_symbol(0, self.scope)), constant(fact_symbol(1, self.scope))
        if len(arguments) == 1:
            return start, arguments[0], step
        if len(arguments) == 3:
            step = arguments[2]
            if step.low < 1:
                raise self.fail("the step of range must be at least 1", step)
        return arguments[0], arguments[1], step

    def arguments(self, name: str, tree: ast.Call, depth: int) -> tuple[Node, ...]:
        least, most = ARITIES[name]
        if tree.keywords or not least <= len(tree.args) <= most:
            raise self.fail(f"{name} is called the wrong way", tree, FUNCTIONS[name])
        return tuple(self.node(argument, depth) for argument in tree.args)

    def call(self, tree: ast.Call, depth: int) -> Node:
        name = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if name not in FUNCTIONS:
            hint = "functions: " + ", ".join(sorted(FUNCTIONS))
            raise self.fail(f"unknown function{did_you_mean(name, FUNCTIONS)}", tree.func, hint)
        if name == "range":
            raise self.fail("range only stands after `in`", tree, FUNCTIONS[name])
        operands = self.arguments(name, tree, depth)
        return self.called(name, operands, tree)

    def called(self, name: str, operands: tuple[Node, ...], tree: ast.Call) -> Node:
        if name == "is_set":
            (operand,) = operands
            if operand.op != "parameter":
                raise self.fail("is_set asks about a parameter", tree, FUNCTIONS[name])
            return Node("is_set", "bool", (), 0, 1, position=operand.position, positions=operand.positions)
        for operand in operands:
            self.want_number(operand, name)
        if name == "between":
            return combine("between", "bool", operands, (0, 1))
        if name == "divides":
            remainder = self.arithmetic("mod", (operands[1], operands[0]), tree)
            return self.compared("eq", remainder, constant(fact_symbol(0, self.scope)))
        if name in {"is_square", "is_power_of_two"}:
            self.want_whole(operands[0], name)
            return combine(name, "bool", operands, (0, 1))
        if name in {"floor", "ceil"}:
            return _rounding(name, operands[0])
        return self.arithmetic(name, operands, tree)

    def want_number(self, node: Node, where: str) -> None:
        if not node.is_number:
            raise self.fail(f"{where} needs a number; this is {_a(node.kind)}", node)

    def want_whole(self, node: Node, where: str) -> None:
        if node.kind not in {"int", "bool"}:
            raise self.fail(f"{where} needs a whole number; this is {_a(node.kind)}", node, "use // or floor(...)")

    def want_condition(self, node: Node, where: str) -> None:
        if node.kind != "bool":
            hint = "compare it with something, e.g. `... != 0`"
            raise self.fail(f"{where} needs something true or false; this is {_a(node.kind)}", node, hint)


def _a(kind: Kind) -> str:
    return {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}[kind]


def _rounding(name: str, operand: Node) -> Node:
    low, high = operand.low, operand.high
    if operand.kind != "float":
        return combine(name, "int", (operand,), (low, high))
    exact = max(abs(low), abs(high)) < 2**MAX_BITS
    interval = (math.floor(low), math.ceil(high)) if exact else (low, high)
    return combine(name, "int" if exact else "float", (operand,), interval)
