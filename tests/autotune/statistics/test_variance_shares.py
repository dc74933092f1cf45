"""Shares of the variance: those that are known, and what holds of all."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.statistics.variance_shares import variance_shares

RNG = np.random.default_rng(0)
GRID = np.array(list(product(range(5), range(4), range(3))), dtype=float)


def words(column):
    """Return a column for each value."""
    return (column[:, None] == np.unique(column)[None, :]).astype(float)


def drawn(values, spread=0.01, count=64):
    """Return draws of a function that is known well."""
    return values[:, None] + spread * RNG.standard_normal((len(values), count))


def found(rows, draws):
    shares, rest = variance_shares([words(column) for column in rows.T], draws)
    return {share.of: share for share in shares}, rest


def test_the_shares_of_a_sum_are_those_of_its_terms():
    first, second = 3.0 * GRID[:, 0], np.array([0.0, 5.0, 1.0, 2.0])[GRID[:, 1].astype(int)]
    shares, rest = found(GRID, drawn(first + second))
    whole = first.var() + second.var()
    assert shares[0,].share == pytest.approx(first.var() / whole, abs=0.002)
    assert shares[1,].share == pytest.approx(second.var() / whole, abs=0.002)
    assert shares[0,].low <= first.var() / whole <= shares[0,].high
    assert (shares[2,].low, shares[2,].high) == (0.0, pytest.approx(0.0, abs=0.001))
    assert [share.low for of, share in shares.items() if len(of) == 2] == [0.0] * 3
    assert rest.share < 0.002


def test_an_interaction_is_that_of_its_pair_and_of_nothing_else():
    rows = np.array(list(product((0, 1), (0, 1), (0, 1))) * 3, dtype=float)
    signs = 2.0 * rows - 1.0
    shares, _ = found(rows, drawn(signs[:, 0] * signs[:, 1] + 0.5 * signs[:, 2]))
    assert shares[0, 1].share == pytest.approx(0.8, abs=0.01)
    assert shares[0, 1].low > 0.7
    assert shares[2,].share == pytest.approx(0.2, abs=0.01)
    assert max(shares[0,].share, shares[1,].share, shares[0, 2].share, shares[1, 2].share) < 0.01


def test_what_only_three_explain_together_is_the_rest():
    rows = np.array(list(product((0, 1), (0, 1), (0, 1))) * 3, dtype=float)
    shares, rest = found(rows, drawn(np.prod(2.0 * rows - 1.0, axis=1)))
    assert rest.share > 0.95
    assert all(share.low == 0.0 for share in shares.values())


def test_a_function_that_is_hardly_known_has_wide_intervals_that_reach_zero():
    unknown = RNG.standard_normal((len(GRID), 200))
    shares, _ = found(GRID, 0.1 * GRID[:, :1] + unknown)
    assert all(share.low == 0.0 for share in shares.values())
    sure, _ = found(GRID, drawn(GRID[:, 0] + GRID[:, 1] + GRID[:, 2], 0.01))
    vague, _ = found(GRID, drawn(GRID[:, 0] + GRID[:, 1] + GRID[:, 2], 0.5))
    for one in ((0,), (1,), (2,)):
        assert vague[one].high - vague[one].low > sure[one].high - sure[one].low


def test_what_ties_parameters_does_not_make_more_of_them_than_there_is():
    tied = GRID[(GRID[:, 0] + GRID[:, 1] <= 4.0)]
    tied = np.column_stack([tied, tied[:, 0]])
    shares, rest = found(tied, drawn(tied[:, 0] + tied[:, 1]))
    assert sum(share.share for share in shares.values()) + rest.share == pytest.approx(1.0)
    assert shares[0,].share == pytest.approx(shares[3,].share, abs=0.01), "the same column twice"
    assert shares[0,].share > 0.05


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    points=st.integers(2, 60),
    factors=st.integers(1, 12),
    levels=st.integers(1, 5),
    scale=st.sampled_from([0.0, 1e-12, 1.0, 1e6]),
)
def test_shares_are_between_zero_and_one_and_add_up(seed, points, factors, levels, scale):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, levels, (points, factors)).astype(float)
    draws = scale * (rng.standard_normal((points, 8)) + rows.sum(1, keepdims=True))
    shares, rest = found(rows, draws)
    assert {of for of in shares if len(of) == 1} == {(place,) for place in range(factors)}
    for share in (*shares.values(), rest):
        assert 0.0 <= share.low <= share.share <= share.high <= 1.0 + 1e-9
    assert sum(share.share for share in shares.values()) + rest.share == pytest.approx(1.0)


def test_of_many_parameters_the_pairs_of_those_that_explain_most_are_told():
    rows = RNG.integers(0, 2, (60, 30)).astype(float)
    shares, _ = found(rows, drawn(5.0 * rows[:, 3] + 4.0 * rows[:, 20]))
    pairs = [of for of in shares if len(of) == 2]
    assert (3, 20) in pairs
    assert len(pairs) <= 20
