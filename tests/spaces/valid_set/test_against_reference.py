"""Random spaces against plain enumeration of the product."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spaces import Constraint, Space, SpaceError
from tests.spaces.reference import is_valid, product, valid_configurations
from tests.spaces.strategies import spaces_parts

MANY = settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)
SOME = settings(MANY, max_examples=60)


def hashable(configurations):
    return [tuple(sorted(c.items())) for c in configurations]


def a_space(parts):
    parameters, constraints, facts = parts
    space = Space(parameters, constraints, facts)
    assume(space.raw_size <= 1500)
    return space


@pytest.mark.slow
@MANY
@given(spaces_parts())
def test_lists_exactly_the_valid_ones_in_order(parts):
    space = a_space(parts)
    expected = valid_configurations(*parts)
    if not expected:
        with pytest.raises(SpaceError, match="no configuration is valid"):
            _ = space.size
        return
    assert space.size.value == len(expected)
    assert space.size.exact
    assert list(space.configurations()) == expected


@pytest.mark.slow
@MANY
@given(spaces_parts(), st.randoms(use_true_random=False))
def test_membership_is_that_of_the_reference(parts, random):
    space = a_space(parts)
    combinations = list(product(space.parameters))
    expected = np.array([is_valid(*parts, c) for c in combinations])
    assert (space.valid_indices(space.indices(combinations)) == expected).all()
    for k in random.sample(range(len(combinations)), min(12, len(combinations))):
        assert space.contains(combinations[k]) == expected[k]
        assert (space.violations(combinations[k]) == []) == expected[k]


@SOME
@given(spaces_parts())
def test_a_rule_means_the_same_behind_a_name(parts):
    parameters, constraints, facts = parts
    space = a_space(parts)
    rows = space.indices(list(product(space.parameters)))
    named = [Constraint(constraint.name, f"of_{constraint.name}") for constraint in constraints]
    derived = {f"of_{constraint.name}": constraint.rule for constraint in constraints}
    assert (Space(parameters, named, facts, derived).valid_indices(rows) == space.valid_indices(rows)).all()


@SOME
@given(spaces_parts(), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_samples_are_valid_and_distinct(parts, n, seed):
    space = a_space(parts)
    expected = valid_configurations(*parts)
    assume(expected)
    sample = space.sample(np.random.default_rng(seed), n)
    assert len(sample) == min(n, len(expected))
    assert len(set(hashable(sample))) == len(sample)
    assert set(hashable(sample)) <= set(hashable(expected))
    assert sample == space.sample(np.random.default_rng(seed), n)


@SOME
@given(spaces_parts())
def test_encoding_and_indices_round_trip(parts):
    space = a_space(parts)
    combinations = list(product(space.parameters))
    indices = space.indices(combinations)
    assert indices.dtype == np.int32
    assert space.decode(indices) == combinations
    encoded = space.encode(combinations)
    assert encoded.shape == (len(combinations), len(space.feature_names))
    assert ((encoded >= 0) & (encoded <= 1)).all()
    assert len(np.unique(encoded, axis=0)) == len(combinations)


@SOME
@given(spaces_parts())
def test_nearest_is_the_nearest(parts):
    space = a_space(parts)
    expected = valid_configurations(*parts)
    assume(expected)
    encoded = space.encode(expected)
    for configuration in list(product(space.parameters))[:: max(1, space.raw_size // 10)]:
        complete = all(p.name in configuration or p.optional or p.when for p in space.parameters)
        assert complete
        target = space.encode([configuration])
        found = space.encode([space.nearest(configuration)])
        least = ((encoded - target) ** 2).sum(axis=1).min()
        assert ((found - target) ** 2).sum() == pytest.approx(least, abs=1e-9)


@SOME
@given(spaces_parts())
def test_neighbours_are_valid_and_new(parts):
    space = a_space(parts)
    expected = valid_configurations(*parts)
    assume(expected)
    for configuration in expected[:: max(1, len(expected) // 5)]:
        neighbours = space.neighbours(configuration)
        assert configuration not in neighbours
        assert len(set(hashable(neighbours))) == len(neighbours)
        assert set(hashable(neighbours)) <= set(hashable(expected))


@pytest.mark.slow
@SOME
@given(spaces_parts())
def test_plain_neighbours_are_mutual(parts):
    space = a_space(parts)
    expected = valid_configurations(*parts)
    assume(expected)
    here = expected[len(expected) // 2]
    row = space.indices([here])[0]
    for other in space.neighbours(here):
        changed = np.flatnonzero(space.indices([other])[0] != row)
        if len(changed) == 1:
            assert here in space.neighbours(other)
