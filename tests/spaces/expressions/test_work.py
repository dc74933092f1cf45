"""How much work an expression makes: bounded by its length, however it is nested."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, target
from hypothesis import strategies as st

from spaces import Constraint, ExpressionError, Integer, Space, SpaceError
from spaces.expressions import evaluate, syntax
from spaces.expressions.node import Node, Scope, Symbol
from spaces.expressions.quantities import computing_parts
from spaces.expressions.syntax import MAX_LENGTH, parse

TABLE = np.array([1, 2, 3, 1])

AROUND = ["0<=({})<=1", "({})<1<({})", "a<({})<a", "min({}, 1)", "({})*({})", "(1 if {} else 2)", "({}) in (1, 2)"]
"""Expressions around another one."""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what is read and what is computed."""
    counted: Counter[str] = Counter()

    def count(owner: object, name: str) -> None:
        original = getattr(owner, name)

        def counting(*arguments: object) -> object:
            counted[name] += 1
            return original(*arguments)

        monkeypatch.setattr(owner, name, counting)

    count(syntax._Reader, "node")
    count(evaluate, "_operation")
    return counted


def _scope() -> Scope:
    return Scope({"a": Symbol("int", 1, 3, position=0, table=TABLE)}, {})


def test_what_stands_between_two_comparisons_is_read_and_computed_once(work: Counter[str]) -> None:
    text = "a"
    for _ in range(12):
        text = f"0<=({text})<=1"
    node = parse(text, _scope())
    assert work["node"] < len(text)
    evaluate.holds(node, {0: np.arange(3)})
    assert work["_operation"] < len(text)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(["a", "1", "0.5", "a%2"]))
    for around in draw(st.lists(st.sampled_from(AROUND), max_size=50)):
        larger = around.replace("{}", text)
        if len(larger) > MAX_LENGTH:
            break
        text = larger
    return text


@given(text=expressions())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_expression_takes_more_steps_than_it_has_characters(work: Counter[str], text: str) -> None:
    work.clear()
    try:
        node = parse(text, _scope())
        evaluate.values_of(node, {0: np.arange(3)}, 3)
    except ExpressionError:
        pass
    steps = sum(work.values())
    target(steps / len(text))
    assert steps <= 2 * len(text)


def test_derived_values_that_double_each_other_are_computed_once_each(work: Counter[str]) -> None:
    derived = {"d0": "a % 7"} | {f"d{k}": f"(d{k - 1} + d{k - 1}) % 7" for k in range(1, 60)}
    space = Space([Integer("a", (1, 2, 3))], [Constraint("bounded", "d59 >= 0")], derived=derived)
    assert space.size.value == 3
    assert work["_operation"] < 10_000
    node = space.expression("d59 >= 0")
    assert len(list(computing_parts(node))) < 200


def test_too_many_operations_are_refused_in_words() -> None:
    with pytest.raises(ExpressionError, match=r"takes 951 operations, .* at most 500 are allowed"):
        parse("<".join(["a"] * 951), _scope())
    derived = {"d0": "a % 7"} | {f"d{k}": f"d{k - 1} + {k}" for k in range(1, 400)}
    with pytest.raises(SpaceError, match=r"operations, with those of its derived values; at most 500 are allowed"):
        Space([Integer("a", (1, 2, 3))], derived=derived)


def test_nothing_may_follow_a_list_of_values() -> None:
    with pytest.raises(ExpressionError, match="nothing stands after the list of `in`"):
        parse("a in (1, 2) == 1", _scope())


def test_parts_stand_after_what_they_are_computed_of() -> None:
    node: Node = parse("0 <= (a + 1) <= a * 2", _scope())
    parts = node.parts()
    assert len(set(parts)) == len(parts)
    assert all(parts.index(operand) < place for place, part in enumerate(parts) for operand in part.operands)
