"""A second, plain implementation of what a space means: the product of all values, filtered one by one.

It shares nothing with the code under test: rules are run by Python itself.
"""

import ast
import itertools
import math
import re

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
    "__builtins__": {},
}


def needed_names(rule):
    tree = ast.parse(rule, mode="eval")
    inside = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.func.id == "is_set":
            inside.add(id(node.args[0]))
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in inside} - set(FUNCTIONS)


def truth(rule, configuration, facts):
    """True, False, or None where the rule mentions a parameter without a value."""
    if any(name not in configuration and name not in facts for name in needed_names(rule) - {"is_set"}):
        return None
    text = re.sub(r"is_set\((\w+)\)", r'is_set("\1")', rule)
    names = {**FUNCTIONS, "is_set": configuration.__contains__, **facts, **configuration}
    try:
        return bool(eval(text, names))
    except (ArithmeticError, ValueError):
        return False


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
