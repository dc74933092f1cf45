"""Rules that forbid nothing are seen; those that only this machine makes idle are not."""

import pytest

from autotune.planning.idle_rules import idle_rules
from autotune.studyfile.model import SpaceSection
from spaces import space_from_tables

PARAMETERS = {
    "a": {"type": "integer", "values": [1, 2, 3]},
    "b": {"type": "integer", "values": [1, 2, 3]},
    "c": {"type": "integer", "values": [1, 2], "when": "a == 1"},
    "d": {"type": "integer", "values": [1, 2], "when": "a == 2"},
    "e": {"type": "choice", "values": ["x", "y"], "optional": True},
    "np": {"type": "integer", "low": 1, "high": "cores"},
}


def found(*rules):
    section = SpaceSection(
        parameters=PARAMETERS, constraints=[{"name": f"r{k}", "rule": rule} for k, rule in enumerate(rules)]
    )
    space = space_from_tables(section.parameters, section.constraints, {"cores": 1})
    return list(idle_rules(space, section))


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        (["a <= 3"], "'r0' forbids nothing: it is true for all values"),
        (["c < d"], "'r0' forbids nothing: it is unknown wherever"),
        (["not (is_set(c) and d == 1)"], "'r0' forbids nothing: it is true or unknown for all values"),
        (["a + b <= 3", "a <= 2"], "'r1' forbids nothing: where it is false, other rules forbid"),
    ],
)
def test_a_rule_that_forbids_nothing_is_named_with_the_reason(rules, why):
    (sentence,) = found(*rules)
    assert why in sentence


@pytest.mark.parametrize(
    "rule",
    [
        "a <= 2",
        "a == 1 or (is_set(e) and e == 'x')",
        "c < 2",
        "e == 'x'",
        "np <= cores",
        "np * a <= 9",
        "b <= 8 * cores",
    ],
)
def test_rules_that_forbid_something_or_would_elsewhere_are_not(rule):
    assert found(rule) == []
