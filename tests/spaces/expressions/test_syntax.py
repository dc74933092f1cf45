"""The language of rules: what it says about mistakes, that it never runs anything, and that it counts right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaces import Choice, Constraint, ExpressionError, Flag, Integer, Space, SpaceError
from spaces.expressions.bounds import of_operation
from spaces.expressions.constant import constant_value
from spaces.expressions.evaluate import can_fail
from spaces.expressions.fact import fact_symbol
from spaces.expressions.node import Scope, Symbol
from spaces.expressions.syntax import parse, parse_condition

GOLDEN = [
    (
        "np % npol == 0",
        (
            "unknown name 'npol' (did you mean 'npool'?)\n"
            "    np % npol == 0\n"
            "         ^^^^\n"
            "known names: cores, gpu, mixing, np, npool"
        ),
    ),
    (
        'mixing == "plan"',
        (
            "mixing is never 'plan' (did you mean 'plain'?)\n"
            '    mixing == "plan"\n'
            "              ^^^^^^\n"
            "its values: 'local-TF', 'plain'"
        ),
    ),
    (
        "np < 'many'",
        (
            "compares a word with a whole number\n"
            "    np < 'many'\n"
            "         ^^^^^^\n"
            'words stand in quotes: "48" is a word, 48 a number'
        ),
    ),
    (
        "mixing < 'plain'",
        "words have no order\n    mixing < 'plain'\n             ^^^^^^^\ncompare words with ==, != or in",
    ),
    (
        "np % 2 and npool > 1",
        (
            "`and` needs something true or false; this is a whole number\n"
            "    np % 2 and npool > 1\n"
            "    ^^^^^^\n"
            "compare it with something, e.g. `... != 0`"
        ),
    ),
    (
        "np + npool",
        (
            "a rule must be true or false; this is a whole number\n"
            "    np + npool\n"
            "    ^^^^^^^^^^\n"
            "compare it with something, e.g. `... == 0`"
        ),
    ),
    (
        "np in 48",
        (
            "`in` needs a list of values\n"
            "    np in 48\n"
            "          ^^\n"
            "`in` takes (1, 2, 4) or range(1, 49); to include both ends use between(x, 1, 48)"
        ),
    ),
    (
        "is_sqare(np)",
        (
            "unknown function (did you mean 'is_square'?)\n"
            "    is_sqare(np)\n"
            "    ^^^^^^^^\n"
            "functions: abs, between, ceil, divides, floor, is_power_of_two, is_set, "
            "is_square, log2, max, min, range, sqrt"
        ),
    ),
    (
        "is_square(np / 2)",
        (
            "is_square needs a whole number; this is a number\n"
            "    is_square(np / 2)\n"
            "              ^^^^^^\n"
            "use // or floor(...)"
        ),
    ),
    (
        "divides(np)",
        "divides is called the wrong way\n    divides(np)\n    ^^^^^^^^^^^\ndivides(a, b): b is a multiple of a",
    ),
    ("np ** 65 > 1", "the exponent can be larger than 64\n    np ** 65 > 1\n          ^^"),
    (
        "(np ** 60) * (np ** 60) > 1",
        "this can become larger than 2**256\n    (np ** 60) * (np ** 60) > 1\n     ^^^^^^^^",
    ),
    (
        "gpu & (np > 1)",
        "bitand is not part of the language of rules\n    gpu & (np > 1)\n    ^^^^^^^^^^^^^^\nuse `and`",
    ),
    (
        "is_set(cores)",
        (
            "is_set asks about a parameter\n"
            "    is_set(cores)\n"
            "    ^^^^^^^^^^^^^\n"
            "is_set(p): the parameter p has a value (it is neither unset nor inactive)"
        ),
    ),
]


def scope():
    names = Scope({}, {})
    space_names = {"np": (1, 48), "npool": (1, 8)}
    for position, (name, (low, high)) in enumerate(space_names.items()):
        names.symbols[name] = Symbol("int", low, high, position, np.array([low, high, low]))
    codes = np.array([names.code("plain"), names.code("local-TF"), 0])
    names.symbols["mixing"] = Symbol("str", position=2, table=codes, words=frozenset({"plain", "local-TF"}))
    names.symbols["gpu"] = Symbol("bool", 0, 1, 3, np.array([False, True, False]))
    names.symbols["cores"] = fact_symbol(48, names)
    return names


@pytest.mark.parametrize(("text", "message"), GOLDEN)
def test_says_what_is_wrong_and_where(text, message):
    with pytest.raises(ExpressionError) as caught:
        parse_condition(text, scope())
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "np = 3",
        "np ==",
        "np.real > 1",
        "np[0] > 1",
        "__import__('os').system('true') == 0",
        "(lambda: 1)() == 1",
        "[x for x in (1, 2)] == 1",
        "f'{np}' == 'x'",
        "np is 3",
        "np == None",
        "b'x' == 'x'",
        "1j == np",
        "np > 1e999",
        "(y := 3) == 3",
        "np == ...",
        "max(*(1, 2)) > 1",
        "max(1, key=2) > 1",
        "range(3) == np",
        "np in range(1, 10, 0)",
        "np in range(0.5)",
        "np in ()",
        "mixing in ('plain', 'plan')",
        "'plan' != mixing",
        "-mixing == 1",
        "not np",
        "np if np else npool",
        "(np if gpu else 'x') == 1",
        "9" * 100 + " > np",
        "(" * 300 + "np" + ")" * 300 + " > 1",
        "-" * 1500 + "np > 1",
        "np > 1" + " and np > 1" * 300,
        "not " * 100 + "gpu",
        "2 ** 2 ** 2 ** 2 ** 2 > 1",
        "\0",
        "\ud800 == 1",
    ],
)
def test_refuses_what_is_not_of_the_language(text):
    with pytest.raises(ExpressionError, match=r"\^"):
        parse_condition(text, scope())


@pytest.mark.parametrize(
    "text", ["np > 1  # more than one\n", "np > 1  # more than one\nand np < 9", "mixing == 'plain'  # not \"TF\""]
)
def test_a_remark_is_refused_as_the_lines_below_would_be_a_part_of_it(text):
    with pytest.raises(ExpressionError, match=r"a remark \(#\) has no place in an expression") as caught:
        parse_condition(text, scope())
    _, shown, caret, _ = str(caught.value).splitlines()
    assert shown[caret.index("^")] == "#"


@pytest.mark.parametrize(
    "rule", ["w == '#1'", 'w in ("#1", "b")', "w != 'b' or\nw == '#1'", 'w == "it\'s #2" or w == "#1"']
)
def test_words_may_have_the_sign_of_a_remark(rule):
    space = Space([Choice("w", ("#1", "b", "it's #2"))], [Constraint("rule", rule)])
    assert space.contains({"w": "#1"})


WORDS = ["np", "npool", "mixing", "gpu", "cores", "'plain'", "1", "2.5", "0", "(", ")", ",", "+", "-", "*", "/", "//"]
WORDS += ["%", "**", "==", "<", ">=", "!=", "and", "or", "not", "in", "if", "else", "is_set", "min", "range", "floor"]
WORDS += ["sqrt", "between", "[", "]", "is", "lambda", ":", ".", "=", "~", "True", "None", "é"]


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=40), st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)))
def test_any_text_is_read_or_refused_with_an_expression_error(text):
    try:
        parse(text, scope())
    except ExpressionError as error:
        shown = str(error)
    else:
        return
    assert "^" in shown


def holds(rule, **values):
    parameters = [
        Flag(name) if isinstance(v, bool) else Choice(name, (v,)) if isinstance(v, str) else Integer(name, (v,))
        for name, v in values.items()
    ]
    return Space(parameters, [Constraint("rule", rule)]).contains(values)


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        ("a * b > 0", {"a": 2**61, "b": 2**61}),
        ("a * b * a * b == (2 ** 60) ** 4", {"a": 2**60, "b": 2**60}),
        ("a ** 4 - 1 < a ** 4", {"a": 2**40}),
        ("a + b == 2 ** 62", {"a": 2**61, "b": 2**61}),
        ("is_square(a * a)", {"a": 2**61 - 1}),
        ("not is_square(a * a - 1)", {"a": 2**61 - 1}),
        ("is_square(0) and is_square(1) and not is_square(-1) and not is_square(a)", {"a": 2}),
        ("is_power_of_two(a) and not is_power_of_two(a - 1) and not is_power_of_two(0)", {"a": 2**50}),
        ("-7 // 2 == -4 and -7 % 3 == 2 and a // -2 == -4", {"a": 7}),
        ("a ** -1 == 0.5", {"a": 2}),
        ("a / 4 == 0.5", {"a": 2}),
        ("floor(a / 2) == 3 and ceil(a / 2) == 4 and floor(-a / 2) == -4", {"a": 7}),
        ("log2(a) == 5 and sqrt(a * 2) == 8", {"a": 32}),
        ("a == 0 or 4 % a == 0", {"a": 0}),
        ("not (a != 0 and 4 % a == 1)", {"a": 0}),
        ("(0 if a == 0 else 4 % a) == 0", {"a": 0}),
        ("1 <= a < 4 != 5", {"a": 3}),
        ("a in range(10) and a in range(1, 9, 2) and a not in range(3)", {"a": 3}),
        ("between(a, 3, 3) and divides(3, a)", {"a": 3}),
        ("(2 if f else 3) + f == 3", {"f": True}),
        ("w == 'x' and w in ('x',) and ('x' if w == 'x' else 'y') == w", {"w": "x"}),
        ("min(a, 2.5) == 2.5 and max(a, 1) == 3 and abs(-a) == 3", {"a": 3}),
    ],
)
def test_counts_as_python_does(rule, values):
    assert holds(rule, **values)


@pytest.mark.parametrize(
    "rule", ["4 % a == 0", "4 // a > 0 or True", "not 4 / a > 1", "sqrt(a - 1) >= 0", "log2(a) < 9"]
)
def test_what_cannot_be_computed_does_not_hold(rule):
    assert not holds(rule, a=0)


def test_constant_values():
    facts = {"cores": 48, "machine": "gadi"}
    assert constant_value("cores // 2", facts) == 24
    assert type(constant_value("cores // 2", facts)) is int
    assert constant_value("machine", facts) == "gadi"
    assert constant_value("cores > 2 ** 64 * 2 ** 64", facts) is False
    root = constant_value("floor(cells ** 0.5)", {"cells": 1000})
    assert (root, type(root)) == (31, int)
    with pytest.raises(ExpressionError, match="has no value"):
        constant_value("cores // 0", facts)


@pytest.mark.parametrize(
    ("text", "fails"),
    [
        ("np ** 0.5", False),
        ("np ** (2 / 3) / np ** (2 / 3)", False),
        ("2.5 ** (np - 24)", False),
        ("(np - 1) ** 0.5", False),
        ("(np - 1) ** -0.5", True),
        ("(np - 2) ** 0.5", True),
        ("1e200 ** 2.5", True),
        ("(np * 1e200) ** 2.5", True),
    ],
)
def test_a_power_can_fail_where_its_base_is_too_low_or_it_is_too_large(text, fails):
    assert can_fail(parse(text, scope())) == fails


@given(
    st.lists(st.one_of(st.just(0.0), st.floats(1e-3, 1e3)), min_size=3, max_size=3).map(sorted),
    st.lists(st.floats(-64, 64), min_size=3, max_size=3).map(sorted),
)
def test_a_power_lies_within_its_bounds(base, exponent):
    low, high = of_operation("pow", [(base[0], base[2]), (exponent[0], exponent[2])], whole=False)
    with np.errstate(divide="ignore"):
        assert low <= np.power(base[1], exponent[1]) <= high
    assert np.isfinite(high) == (base[0] > 0 or exponent[0] >= 0)


def test_all_errors_of_a_space_at_once():
    parameters = [Integer.range("np", 1, 4), Flag("gpu", when="gpus > 0"), Integer.range("gpus", 0, 2)]
    constraints = [Constraint("one", "np > nq"), Constraint("two", "np"), Constraint("fine", "np > 1")]
    with pytest.raises(SpaceError) as caught:
        Space(parameters, constraints)
    assert len(caught.value.problems) == 3
    assert "a condition may only mention parameters that are declared before it" in caught.value.problems[0].message
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
