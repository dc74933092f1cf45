"""One figure of several ratios: its interval is made of theirs, and covers as often as they do."""

from math import exp, log, prod, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.statistics.geometric_mean import geometric_mean
from autotune.statistics.signed_rank import interval

middles = st.floats(0.1, 10.0)
spreads = st.floats(1.0, 3.0)
ratios = st.builds(lambda ratio, below, above: (ratio, ratio / below, ratio * above), middles, spreads, spreads)
weights = st.floats(0.1, 10.0)
weighted = st.lists(st.tuples(ratios, weights), min_size=1, max_size=6)


def mean(parts):
    return geometric_mean([ratio for ratio, _ in parts], [weight for _, weight in parts])


@given(ratios, weights)
def test_one_ratio_is_its_own_mean(ratio, weight):
    assert mean([(ratio, weight)]) == pytest.approx(ratio)


@given(weighted, st.floats(0.01, 100.0))
def test_only_the_proportions_of_the_weights_count(parts, factor):
    assert mean([(ratio, factor * weight) for ratio, weight in parts]) == pytest.approx(mean(parts))


@given(weighted, st.randoms())
def test_the_order_of_the_ratios_does_not_matter(parts, random):
    assert mean(random.sample(parts, len(parts))) == pytest.approx(mean(parts))


@given(weighted)
def test_exchanging_the_sides_turns_the_figure_round(parts):
    middle, low, high = mean(parts)
    turned = [((1 / ratio, 1 / end, 1 / start), weight) for (ratio, start, end), weight in parts]
    assert mean(turned) == pytest.approx((1 / middle, 1 / high, 1 / low))


@given(weighted)
def test_a_whole_weight_counts_as_so_many_members_do_in_the_middle(parts):
    doubled = [*parts, *parts]
    assert mean(doubled)[0] == pytest.approx(mean(parts)[0])


@given(weighted)
def test_the_interval_is_never_wider_than_all_ends_at_once(parts):
    whole = sum(weight for _, weight in parts)
    lowest, highest = (prod(ratio[end] ** (weight / whole) for ratio, weight in parts) for end in (1, 2))
    middle, low, high = mean(parts)
    assert lowest * (1 - 1e-9) <= low <= middle * (1 + 1e-9)
    assert middle * (1 - 1e-9) <= high <= highest * (1 + 1e-9)


@given(ratios, st.integers(1, 20))
def test_alike_members_narrow_the_interval_by_the_root_of_their_number(ratio, count):
    middle, low, high = geometric_mean([ratio] * count, [1.0] * count)
    assert log(middle / low) == pytest.approx(log(ratio[0] / ratio[1]) / sqrt(count))
    assert log(high / middle) == pytest.approx(log(ratio[2] / ratio[0]) / sqrt(count))


def test_what_is_known_exactly_adds_no_doubt():
    middle, low, high = geometric_mean([(4.0, 2.0, 8.0), (1.0, 1.0, 1.0)], [1.0, 1.0])
    assert (middle, low, high) == pytest.approx((2.0, sqrt(2.0), sqrt(8.0)))


def test_weights_are_exponents():
    assert geometric_mean([(2.0, 2.0, 2.0), (16.0, 16.0, 16.0)], [3.0, 1.0])[0] == pytest.approx(2.0**1.75)


def test_there_is_no_mean_of_nothing():
    with pytest.raises(ValueError, match="no ratio"):
        geometric_mean([], [])
    with pytest.raises(ValueError, match="zip"):
        geometric_mean([(1.0, 1.0, 1.0)], [])


def normal(rng, shape):
    return 0.05 * rng.standard_normal(shape)


def heavy_tailed(rng, shape):
    return 0.05 * rng.standard_t(2.5, shape)


def skewed_runs(rng, shape):
    return 0.05 * (rng.exponential(size=shape) - rng.exponential(size=shape))


@pytest.mark.parametrize("noise", [normal, heavy_tailed, skewed_runs])
@pytest.mark.parametrize(
    ("truth", "pairs"), [((1.9, 1.0, 1.3), (8, 8, 8)), ((1.2, 2.5), (6, 20)), ((1.1,) * 8, (8,) * 8)]
)
def test_the_interval_covers_the_true_mean_at_least_as_often_as_it_says(noise, truth, pairs):
    rng, seeds = np.random.default_rng(7), 1000
    shares = [1.0 + number for number in range(len(truth))]
    true = exp(np.average(np.log(truth), weights=shares))
    covered = 0
    for _ in range(seeds):
        found = [
            interval(log(ratio) * np.ones(count) + rng.uniform(0.5, 2.0) * noise(rng, count), 0.95)
            for ratio, count in zip(truth, pairs, strict=True)
        ]
        _, low, high = geometric_mean([tuple(map(exp, one)) for one in found], shares)
        covered += low <= true <= high
    # Three standard errors of a share of 95 %.
    assert covered / seeds >= 0.95 - 3 * sqrt(0.95 * 0.05 / seeds)
