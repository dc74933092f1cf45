"""A second, plain implementation of what a space means: the product of all values, filtered one by one.

It shares nothing with the code under test: rules are computed by Python's own operators, one configuration at a time.
"""

import ast
import itertools
import math
import operator

FUNCTIONS = {
    "abs": abs,
    "between": lambda x, low, high: low <= x <= high,
    "ceil": math.ceil,
    "divides": lambda a, b: b % a == 0,
    "floor": math.floor,
    "is_power_of_two": lambda n: n > 0 and (n).bit_count() == 1,
    "is_square": lambda n: n >= 0 and math.isqrt(n) ** 2 == n,
    "log2": math.log2,
    "max": max,
    "min": min,
    "range": range,
    "sqrt": math.sqrt,
}


UNKNOWN, FAILED = object(), object()
"""The value of a part that mentions a parameter without a value, and of one that Python cannot compute."""

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}


def strict(function, *operands):
    """Nothing is known of what has an unknown part."""
    if UNKNOWN in operands:
        return UNKNOWN
    if FAILED in operands:
        return FAILED
    try:
        return function(*operands)
    except (ArithmeticError, ValueError):
        return FAILED


def conjunction(parts):
    """Kleene's "and": false once a part is; as in Python, a part that fails counts only if all before it are true."""
    so_far = True
    for part in parts:
        if so_far is UNKNOWN:
            so_far = False if part is not UNKNOWN and part is not FAILED and not part else UNKNOWN
        elif so_far is not FAILED and so_far:
            so_far = part
    return so_far


def negation(part):
    return strict(operator.not_, part)


def value(tree, names):  # noqa: C901, PLR0911  a case for each kind of expression
    match tree:
        case ast.Constant():
            return tree.value
        case ast.Name():
            return names.get(tree.id, UNKNOWN)
        case ast.Call(func=ast.Name(id="is_set")):
            return tree.args[0].id in names
        case ast.Call():
            return strict(FUNCTIONS[tree.func.id], *(value(argument, names) for argument in tree.args))
        case ast.Tuple() | ast.List():
            return strict(lambda *elements: elements, *(value(element, names) for element in tree.elts))
        case ast.BoolOp(op=ast.And()):
            return conjunction(value(part, names) for part in tree.values)
        case ast.BoolOp():
            return negation(conjunction(negation(value(part, names)) for part in tree.values))
        case ast.UnaryOp():
            return strict(OPERATORS[type(tree.op)], value(tree.operand, names))
        case ast.BinOp():
            return strict(OPERATORS[type(tree.op)], value(tree.left, names), value(tree.right, names))
        case ast.Compare():
            sides = [value(side, names) for side in (tree.left, *tree.comparators)]
            pairs = zip(tree.ops, sides, sides[1:], strict=False)
            return conjunction(strict(OPERATORS[type(op)], left, right) for op, left, right in pairs)
        case ast.IfExp():
            test, yes, no = (value(part, names) for part in (tree.test, tree.body, tree.orelse))
            if test is UNKNOWN:
                return yes if yes == no and yes is not FAILED else UNKNOWN
            return test if test is FAILED else yes if test else no
    raise AssertionError(ast.dump(tree))


def truth(rule, configuration, facts):
    """True, False, or None where a parameter without a value leaves it open; what fails is false."""
    found = value(ast.parse(rule, mode="eval").body, {**facts, **configuration})
    return None if found is UNKNOWN else found is not FAILED and bool(found)


def is_valid(parameters, constraints, facts, configuration):
    for parameter in parameters:
        present = parameter.name in configuration
        exists = parameter.when is None or truth(parameter.when, configuration, facts) is True
        if present != exists and not (exists and parameter.optional):
            return False
    return all(truth(constraint.rule, configuration, facts) is not False for constraint in constraints)


def product(parameters):
    """All combinations in lexicographic order, no value before the values."""
    states = [([None] if p.optional or p.when is not None else []) + list(p.values) for p in parameters]
    for values in itertools.product(*states):
        yield {p.name: value for p, value in zip(parameters, values, strict=True) if value is not None}


def valid_configurations(parameters, constraints, facts):
    return [c for c in product(parameters) if is_valid(parameters, constraints, facts, c)]
