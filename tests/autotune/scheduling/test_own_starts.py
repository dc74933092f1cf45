"""Values with starts of their own: what pairs of short and whole runs tell of other trials."""

from autotune.scheduling.own_starts import OwnStarts, values_of
from spaces import Integer, Space

SLOW, FAST = (0, 1), (1, 2)


def starts(short, whole, values, noise=0.001):
    return OwnStarts({number: frozenset(own) for number, own in values.items()}, short, whole, 10.0, noise)


def test_a_pair_tells_what_another_trial_with_its_value_may_take():
    # Both start in 5 s: what the short run of trial 2 is faster by is its pace, ten times as much in a whole run.
    made = starts({1: 6.0, 2: 5.5}, {1: 15.0}, {1: {SLOW}, 2: {SLOW}})
    assert made.may_reach(2, 10.5)
    assert not made.may_reach(2, 9.5)


def test_without_a_value_in_common_a_pair_tells_nothing():
    assert not starts({1: 6.0, 2: 5.5}, {1: 15.0}, {1: {SLOW}, 2: {FAST}}).may_reach(2, 10.5)


def test_parts_of_a_long_range_take_the_place_of_values():
    space = Space([Integer.range("a", 0, 7, default=0), Integer.range("b", 0, 2, default=1)])
    assert values_of(space, {4: {"a": 0, "b": 2}, 6: {"a": 1, "b": 0}, 7: {"a": 7, "b": 0}}) == {
        4: {(0, 0), (1, 2)},
        6: {(0, 0), (1, 0)},
        7: {(0, 3), (1, 0)},
    }
