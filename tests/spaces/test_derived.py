"""Derived values, and what jobs mention beside parameters."""

import json
import pickle

import pytest

from spaces import Choice, Constraint, Integer, Space, SpaceError, parameters_from_tables
from spaces.expressions.derived import constants
from spaces.mention import Mention, values_of_mentions

RANKS = Integer("ranks", (1, 2, 4), default=1)
THREADS = Integer("threads", (1, 2, 3), default=1, optional=True)
FACTS = {"cores": 4, "machine": "gadi"}
DERIVED = {"used": "ranks * team", "team": "threads", "half": "cores // 2", "kind": "'big' if ranks > 2 else 'small'"}


def space(*rules, derived=DERIVED, parameters=(RANKS, THREADS)):
    return Space(parameters, [Constraint(f"c{k}", rule) for k, rule in enumerate(rules)], FACTS, derived)


def test_values_by_name_and_none_where_a_parameter_has_none():
    found = space().derived_values({"ranks": 4, "threads": 3})
    assert found == {"used": 12, "team": 3, "half": 2, "kind": "big"}
    assert space().derived_values({"ranks": 1}) == {"half": 2, "kind": "small"}


def test_rules_and_conditions_use_them_and_configurations_have_none():
    late = Integer("late", (7,), when="used > 2")
    made = space("used <= cores", "kind == 'small'", parameters=(RANKS, THREADS, late))
    found = list(made.configurations())
    assert {"ranks": 2, "threads": 2, "late": 7} in found
    assert {"ranks": 1, "threads": 2} in found
    assert all(configuration.keys() <= {"ranks", "threads", "late"} for configuration in found)
    assert all(configuration["ranks"] * configuration.get("threads", 1) <= 4 for configuration in found)
    assert "used=6" in made.violations({"ranks": 2, "threads": 3, "late": 7})[0]


def test_they_are_stored_with_the_space_and_change_it():
    made = space()
    assert Space.from_dict(json.loads(json.dumps(made.to_dict()))) == made == pickle.loads(pickle.dumps(made))
    assert made != space(derived={})
    assert "derived" not in space(derived={}).to_dict(), "a stored space from before there were any is the same"


def test_bounds_know_those_that_depend_on_facts_alone():
    known = constants(DERIVED, FACTS)
    assert known == {"half": 2}
    (parameter,) = parameters_from_tables({"n": {"type": "integer", "low": 1, "high": "half"}}, known)
    assert parameter.values == (1, 2)


@pytest.mark.parametrize(
    ("derived", "message"),
    [
        ({"a": "b + 1", "b": "c", "c": "a * 2"}, "in a circle: a needs b, b needs c, c needs a"),
        ({"a": "a"}, "in a circle: a needs a"),
        ({"a": "b", "b": "ranks * thread"}, "unknown name 'thread' (did you mean 'threads'?) @ space.derived.b"),
        ({"a": "ranks +"}, "cannot read this"),
        ({"ranks": "1"}, "'ranks' is a parameter, too"),
        ({"cores": "1"}, "'cores' is a fact, too"),
        ({"min": "1"}, "is the name of a function"),
        ({"not good": "1"}, "is not a name"),
    ],
)
def test_each_mistake_is_told_once(derived, message):
    with pytest.raises(SpaceError) as caught:
        space("a > 1", derived={"a": "1", **derived})
    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_a_condition_cannot_use_what_depends_on_later_parameters():
    early = Integer("early", (1,), when="used > 2")
    with pytest.raises(SpaceError, match="declared before it, and derived values of these"):
        space(parameters=(early, RANKS, THREADS))


def computed(configuration, *texts, parameters=(RANKS, THREADS)):
    values, _, problems = values_of_mentions(space(parameters=parameters), [Mention(text, "here") for text in texts])
    assert not problems
    return values.of(configuration)


def test_mentions_are_computed_by_key():
    found = computed(
        {"ranks": 4, "threads": 3}, "ranks", "used", "cores", "ranks  * 0.1", "kind == 'big'", "threads > 5"
    )
    assert found == {
        "ranks": 4,
        "used": 12,
        "cores": 4,
        "= ranks * 0.1": 0.4,
        "= kind == 'big'": True,
        "= threads > 5": False,
    }
    assert computed({"ranks": 4}, "ranks * threads") == {}


def test_a_configuration_for_which_a_mention_has_no_value_is_not_valid():
    zero = Integer("zero", (0, 1), default=1)
    made = Space((RANKS, zero), (), FACTS)
    mentions = [
        Mention("ranks // zero", "options.argv.1"),
        Mention("4 // ranks - 1", "options.threads", least=1),
        Mention("4 // ranks", "options.argv.2"),
    ]
    _, needed, _ = values_of_mentions(made, mentions)
    assert [constraint.name for constraint in needed] == ["options.argv.1", "options.threads"]
    narrowed = Space(made.parameters, needed, FACTS)
    assert list(narrowed.configurations()) == [{"ranks": 1, "zero": 1}, {"ranks": 2, "zero": 1}]


def test_mentions_at_one_path_of_which_each_may_have_no_value_are_rules_with_names_of_their_own():
    made = Space((RANKS, Integer("zero", (0, 1), default=1)), (), FACTS)
    texts = ["ranks // zero", "4 //  zero", "ranks % zero"]
    _, needed, _ = values_of_mentions(made, [Mention(text, "options.argv.1") for text in texts])
    names = ["options.argv.1", "options.argv.1: 4 // zero", "options.argv.1: ranks % zero"]
    assert [constraint.name for constraint in needed] == names
    assert Space(made.parameters, needed, FACTS).size.value == 3


def test_a_root_that_is_rounded_is_a_count():
    made = Space((RANKS,), (), {"cells": 1000})
    values, needed, problems = values_of_mentions(made, [Mention("floor(cells ** 0.5)", "options.ranks", least=1)])
    assert (needed, problems) == ([], [])
    assert values.of({"ranks": 1}) == {"= floor(cells ** 0.5)": 31}


def test_a_count_may_be_zero_where_that_is_the_least():
    made = Space((RANKS,), (), FACTS)
    mention = Mention("ranks if ranks > 1 else 0", "options.gpus", least=0)
    values, needed, problems = values_of_mentions(made, [mention])
    assert (needed, problems) == ([], [])
    assert [values.of({"ranks": ranks})[mention.key] for ranks in (1, 2)] == [0, 2]
    _, (rule,), _ = values_of_mentions(made, [Mention("ranks - 2", "options.gpus", least=0)])
    assert rule.rule == "(ranks - 2) >= 0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ranks / 2", "this must be a whole number; it is a number"),
        ("word", "it is a word"),
        ("ranks > 1", "it is true or false"),
        ("-ranks", "this must be at least 1"),
        ("ranks + 'x'", "arithmetic needs a number"),
    ],
)
def test_a_count_is_a_whole_number(text, message):
    made = Space((RANKS, Choice("word", ("a",))), (), FACTS)
    _, _, (problem,) = values_of_mentions(made, [Mention(text, "options.ranks", least=1)])
    assert problem.path == "options.ranks"
    assert message in problem.message
