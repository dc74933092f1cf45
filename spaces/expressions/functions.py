"""The functions that an expression may call, with descriptions for error messages and documentation."""

FUNCTIONS: dict[str, str] = {
    "abs": "abs(x): the magnitude of x",
    "between": "between(x, low, high): low <= x <= high, both ends included",
    "ceil": "ceil(x): the least whole number that is not below x",
    "divides": "divides(a, b): b is a multiple of a",
    "floor": "floor(x): the greatest whole number that is not above x",
    "is_power_of_two": "is_power_of_two(n): n is 1, 2, 4, 8, ...",
    "is_set": "is_set(p): the parameter p has a value (it is neither unset nor inactive)",
    "is_square": "is_square(n): n is 0, 1, 4, 9, ...",
    "log2": "log2(x): the binary logarithm of x",
    "max": "max(a, b, ...): the greatest",
    "min": "min(a, b, ...): the least",
    "range": "x in range(start, stop, step): as in Python, without stop",
    "sqrt": "sqrt(x): the square root of x",
}

ARITIES: dict[str, tuple[int, int]] = {
    "abs": (1, 1),
    "between": (3, 3),
    "ceil": (1, 1),
    "divides": (2, 2),
    "floor": (1, 1),
    "is_power_of_two": (1, 1),
    "is_set": (1, 1),
    "is_square": (1, 1),
    "log2": (1, 1),
    "max": (2, 64),
    "min": (2, 64),
    "range": (1, 3),
    "sqrt": (1, 1),
}
