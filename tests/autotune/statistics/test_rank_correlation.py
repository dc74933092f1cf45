import pytest

from autotune.statistics.rank_correlation import rank_correlation


def test_the_interval_is_that_of_bonett_and_wright():
    found = rank_correlation([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [2, 1, 4, 3, 6, 5, 8, 7, 10, 9])
    assert found.value == pytest.approx(0.9394, abs=1e-4)
    assert (found.low, found.high) == pytest.approx((0.6877, 0.9895), abs=1e-4)


def test_ties_share_their_rank_and_what_says_nothing_is_none():
    assert rank_correlation([1, 1, 2, 2], [1, 1, 2, 2]).value == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3], [1, 2, 3]) is None
    assert rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]) is None
