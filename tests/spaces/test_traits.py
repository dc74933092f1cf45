import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

from spaces import Choice, Constraint, Integer, Space, SpaceError
from tests.spaces.strategies import spaces_parts


def traits(space):
    rows = space.all_indices()
    return space.decode(rows), space.traits_of(rows)


def column_like(found, wanted):
    """Return whether a column runs with `wanted`, in one direction or the other."""
    return any(abs(np.corrcoef(column, wanted)[0, 1]) > 0.9999 for column in found.T)


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(spaces_parts())
def test_traits_tell_configurations_apart_and_are_numbers_near_0_to_1(parts):
    space = Space(*parts)
    assume(space.raw_size <= 1500)
    try:
        rows = space.all_indices()
    except SpaceError:
        assume(False)
    found = space.traits_of(rows)
    assert found.shape[0] == len(rows)
    assert np.isfinite(found).all()
    assert (found >= -0.5).all()
    assert (found <= 1.5).all()
    assert len(np.unique(found.round(9), axis=0)) == len(rows)


def test_doublings_are_equal_steps():
    space = Space([Integer("n", (1, 2, 4, 8, 16), default=1)])
    _, found = traits(space)
    assert np.allclose(found[:, 0], [0.0, 0.25, 0.5, 0.75, 1.0])


def test_small_spreads_stay_linear():
    _, found = traits(Space([Integer("n", (10, 20, 30), default=10)]))
    assert np.allclose(found[:, 0], [0.0, 0.5, 1.0])


def test_how_often_two_divides_a_number_is_a_trait_where_it_is_no_order():
    values = tuple(range(16, 257, 16))
    _, found = traits(Space([Integer("block", values, default=16)]))
    assert column_like(found, [np.log2(value & -value) for value in values])
    _, of_powers = traits(Space([Integer("block", (1, 2, 4, 8), default=1)]))
    assert of_powers.shape[1] == 1


def test_what_a_constraint_computes_is_a_trait():
    space = Space(
        [Integer.range("np", 1, 12, default=12), Integer.range("npool", 1, 12, default=1)],
        [Constraint("whole pools", "np % npool == 0"), Constraint("pool", "np // npool <= 6")],
    )
    configurations = list(space.configurations())
    found = space.traits_of(space.indices(configurations))
    assert column_like(found, [np.log(c["np"] // c["npool"]) for c in configurations])


def test_a_quantity_of_a_parameter_without_a_value_is_no_guess():
    space = Space(
        [Integer.range("np", 2, 8, default=8), Integer.range("npool", 1, 4, optional=True)],
        [Constraint("pool", "np // npool >= 1")],
    )
    configurations = list(space.configurations())
    found = space.traits_of(space.indices(configurations))
    unset = np.array(["npool" not in c for c in configurations])
    quantity = found[:, -1]
    assert (quantity[unset] == 0.5).all()
    assert len(np.unique(quantity[~unset])) > 2


def test_a_choice_of_two_is_one_column_of_three_three():
    _, two = traits(Space([Choice("blas", ("a", "b"), default="a")]))
    _, three = traits(Space([Choice("blas", ("a", "b", "c"), default="a")]))
    assert (two.shape[1], three.shape[1]) == (1, 3)


def test_a_space_of_one_configuration_has_traits():
    assert Space([Integer("n", (3,), default=3)]).traits_of(np.array([[0]])).shape == (1, 1)
