import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaces import Choice, Constraint, Flag, Integer, Listed, Space, SpaceError

PARAMETERS = (
    Integer("np", (1, 2, 4, 8), default=1, optional=True),
    Choice("blas", ("slow", "fast"), default="slow"),
    Flag("huge", default=False),
)
NAMES = ("np", "blas", "huge")
EVERYTHING = list(product((None, 1, 2, 4, 8), ("slow", "fast"), (False, True)))


def listed(combinations):
    return Listed.of("measured", NAMES, combinations, "nothing else was measured")


def rows(space):
    return {tuple(configuration.get(name) for name in NAMES) for configuration in space.configurations()}


@given(st.lists(st.sampled_from(EVERYTHING), min_size=1, unique=True), st.permutations(range(3)))
@settings(deadline=None)
def test_exactly_the_listed_combinations_are_valid(combinations, order):
    names = [NAMES[place] for place in order]
    constraint = Listed.of("measured", names, [[row[place] for place in order] for row in combinations])
    space = Space(PARAMETERS, [constraint])
    assert space.size.exact
    assert space.size.value == len(combinations)
    assert rows(space) == set(combinations)
    for row in EVERYTHING:
        configuration = {name: value for name, value in zip(NAMES, row, strict=True) if value is not None}
        assert space.contains(configuration) == (row in combinations)


def test_rules_hold_beside_it():
    space = Space(PARAMETERS, [listed(EVERYTHING[:15]), Constraint("few", "np <= 2")])
    assert rows(space) == {row for row in EVERYTHING[:15] if row[0] in {None, 1, 2}}


def test_it_is_stored_and_read_as_it_was():
    space = Space(PARAMETERS, [listed(EVERYTHING[::3])])
    assert Space.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    assert space.to_dict() == json.loads(json.dumps(space.to_dict()))


def test_why_a_configuration_is_not_valid():
    space = Space(PARAMETERS, [listed([(1, "slow", False), (2, "fast", True)])])
    (sentence,) = space.violations({"np": 2, "blas": "slow", "huge": True})
    assert "measured: (np, blas, huge) is one of 2 listed combinations (nothing else was measured): not so" in sentence
    assert "np=2" in sentence


def test_mistakes_are_told_all_at_once():
    wrong = [
        Listed.of("a", ("np", "nothing"), [(3, 1)]),
        Listed.of("b", ("blas",), [("medium",)]),
        Listed.of("c", ("blas",), []),
    ]
    with pytest.raises(SpaceError) as caught:
        Space(PARAMETERS, wrong)
    text = str(caught.value)
    for words in ("unknown parameter 'nothing'", "np is never 3", "blas is never 'medium'", "'c': it lists nothing"):
        assert words in text


def test_a_long_list_over_many_parameters_is_exact():
    # The product has 10^20 combinations: nothing of it may be walked through.
    rng = np.random.default_rng(0)
    names = [f"p{place}" for place in range(20)]
    table = {tuple(int(value) for value in row) for row in rng.integers(0, 10, (10_000, 20))}
    space = Space([Integer(name, tuple(range(10)), default=0) for name in names], [Listed.of("t", names, table)])
    assert (space.size.value, space.size.exact) == (len(table), True)
    assert all(tuple(one.values()) in table for one in space.sample(rng, 50))
    assert all(tuple(one.values()) in table for one in space.neighbours(space.sample(rng, 1)[0]))
