import pytest

from autotune.statistics.rank_correlation import bounded_rank_correlation, rank_correlation


def test_the_interval_is_that_of_bonett_and_wright():
    found = rank_correlation([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [2, 1, 4, 3, 6, 5, 8, 7, 10, 9])
    assert found.value == pytest.approx(0.9394, abs=1e-4)
    assert (found.low, found.high) == pytest.approx((0.6877, 0.9895), abs=1e-4)


def test_ties_share_their_rank_and_what_says_nothing_is_none():
    assert rank_correlation([1, 1, 2, 2], [1, 1, 2, 2]).value == pytest.approx(1.0)
    assert rank_correlation([1, 2, 3], [1, 2, 3]) is None
    assert rank_correlation([1, 1, 1, 1], [1, 2, 3, 4]) is None


def test_what_is_only_known_to_be_more_is_compared_with_what_is_less():
    found = bounded_rank_correlation([1, 2, 3, 4, 5], [1, 2, 9, 4, 3], [False, False, False, True, True])
    # 1 is below four others and 2 below three, and all seven agree. Who is larger, 9 or what is above 4, nobody knows.
    assert found.value == pytest.approx(7 / 8)
    assert found.count == 5


def test_bounds_that_fall_with_time_do_not_hide_that_two_quantities_rank_alike():
    # Each of these was stopped when it was worse than the best so far, which got better and better.
    first, second = [1, 2, 3, 4, 5, 6, 9, 8, 7, 6.5], [10, 20, 30, 40, 50, 60, 60, 40, 20, 10.5]
    is_bound = [False] * 6 + [True] * 4
    assert bounded_rank_correlation(first, second, is_bound).low > 0.5
    assert rank_correlation(first, second).low < 0.0


def test_too_few_comparisons_tell_nothing():
    assert bounded_rank_correlation([1, 2, 3, 4], [1, 2, 3, 4], [False, True, True, True]) is None
    assert bounded_rank_correlation([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [False] * 6).low > 0.0
    assert bounded_rank_correlation([1, 1, 1, 1, 1], [1, 2, 3, 4, 5], [False] * 5).value == 0.0
