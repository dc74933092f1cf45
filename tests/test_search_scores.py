"""The scores behind docs/research/search.md, against brute force over small sets and figures computed by hand."""

from itertools import combinations
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.search_scores import Baseline, RandomSearch, evaluations_to

VALUES = st.lists(st.one_of(st.floats(0.5, 100.0), st.just(nan)), min_size=1, max_size=7).filter(
    lambda values: any(value == value for value in values)  # noqa: PLR0124  not all failed
)


def bests(values: list[float], n: int) -> list[float]:
    """Return the best value of every possible n draws without repeats, all equally likely."""
    worst = np.nanmax(values)
    return [min(drawn) for drawn in combinations([worst if v != v else v for v in values], n)]  # noqa: PLR0124


@given(VALUES)
def test_exact_random_search_is_the_mean_over_all_draws(values):
    random = RandomSearch.over(np.array(values), len(values))

    for n in range(1, len(values) + 1):
        outcomes = bests(values, n)
        assert random.expected_best()[n - 1] == pytest.approx(np.mean(outcomes))
        assert random.deviation()[n - 1] == pytest.approx(np.std(outcomes), abs=1e-5)


@given(VALUES, st.sampled_from([0.25, 0.5, 0.9]))
def test_a_quantile_is_reached_by_at_least_that_share_of_all_draws_and_no_better_value_is(values, share):
    random = RandomSearch.over(np.array(values), len(values))

    for n in range(1, len(values) + 1):
        outcomes = np.array(bests(values, n))
        quantile = random.quantile(share)[n - 1]
        assert (outcomes <= quantile).mean() >= share - 1e-9
        assert (outcomes < quantile).mean() < share


@given(VALUES, st.integers(1, 7), st.sampled_from([0.01, 0.05, 1.0]))
def test_random_evaluations_to_the_optimum_count_every_order(values, budget, within):
    budget = min(budget, len(values))
    random = RandomSearch.over(np.array(values), budget)
    target = np.nanmin(values) * (1 + within)
    reached = [np.mean([best <= target for best in bests(values, n)]) for n in range(1, budget + 1)]

    mean, share = random.evaluations_to(within)

    # A search of budget n has not ended with probability 1 - reached[n], and one that never ends counts budget + 1.
    assert mean == pytest.approx(1 + sum(1 - chance for chance in reached))
    assert share == pytest.approx(reached[-1])


def test_evaluations_to_within_are_counted_from_one_and_censored_after_the_budget():
    best = [3.0, 1.04, 1.04, 1.0]

    assert evaluations_to(best, optimum=1.0, within=0.05, budget=4) == 2
    assert evaluations_to(best, optimum=1.0, within=0.01, budget=4) == 4
    assert evaluations_to(best, optimum=1.0, within=0.01, budget=3) == 4
    assert evaluations_to([3.0], optimum=1.0, within=0.05, budget=50) == 51


@pytest.fixture
def hundred():
    """A baseline over the values 1, 2, ..., 100, at two seconds each."""
    return Baseline.of(np.arange(1.0, 101.0), np.full(100, 2.0), budget=100)


def test_the_cut_off_is_where_random_search_is_expected_95_percent_of_the_way_from_median_to_optimum(hundred):
    """Median 50.5, so the target is 1 + 0.05 x 49.5 = 3.475; 3 is the 98th best of 100: ceil(97 / (101 - 97)) = 25."""
    assert hundred.horizon_s == 25 * 2.0


def test_the_baseline_is_the_expected_minimum_of_the_evaluations_that_are_done(hundred):
    """The expected minimum of n of 1..100 is 101 / (n + 1)."""
    times_s = np.array([0.0, 2.0, 8.0, 9.0])

    assert hundred.at(times_s) == pytest.approx([50.5, 50.5, 101 / 5, 101 / 5])


def test_the_optimum_at_once_scores_one_and_the_baseline_itself_nothing(hundred):
    costs_s = [2.0] * 100

    assert hundred.score(np.ones(100), costs_s) == pytest.approx(1.0)
    assert hundred.score(hundred.expected, costs_s) == pytest.approx(0.0, abs=1e-9)
    assert hundred.score(np.full(100, 100.0), costs_s) < -1.0


def test_the_score_is_the_mean_over_equidistant_times(hundred):
    """Random search is at 101 / (n + 1), the search at 2: compare their distances to 1 over 25 evaluations."""
    random = 101 / np.arange(2.0, 26.0)

    expected = ((random - 2.0) / (random - 1.0)).mean()

    assert hundred.score(np.full(3, 2.0), [2.0] * 3) == pytest.approx(expected, abs=2e-3)


@given(st.integers(0, 1000))
def test_failures_count_as_the_worst_value_and_cost_their_time(seed):
    rng = np.random.default_rng(seed)
    values = rng.permutation(np.concatenate([rng.uniform(1.0, 9.0, 30), np.full(10, nan)]))
    costs_s = np.where(np.isnan(values), 5.0, 1.0)

    baseline = Baseline.of(values, costs_s, budget=40)

    assert baseline.cost_s == pytest.approx(2.0)
    assert baseline.expected[0] == pytest.approx((np.nansum(values) + 10 * np.nanmax(values)) / 40)
