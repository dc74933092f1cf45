"""The geometric mean of several ratios: its interval follows from theirs and has the same coverage."""

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
several = st.lists(ratios, min_size=1, max_size=6)


@given(ratios)
def test_one_ratio_is_its_own_mean(ratio):
    assert geometric_mean([ratio]) == pytest.approx(ratio)


@given(several, st.randoms())
def test_the_order_of_the_ratios_does_not_matter(ratios, random):
    assert geometric_mean(random.sample(ratios, len(ratios))) == pytest.approx(geometric_mean(ratios))


@given(several)
def test_exchanging_the_sides_turns_the_figure_round(ratios):
    middle, low, high = geometric_mean(ratios)
    turned = [(1 / ratio, 1 / end, 1 / start) for ratio, start, end in ratios]
    assert geometric_mean(turned) == pytest.approx((1 / middle, 1 / high, 1 / low))


@given(several)
def test_the_interval_is_never_wider_than_all_ends_at_once(ratios):
    lowest, highest = (prod(ratio[end] ** (1 / len(ratios)) for ratio in ratios) for end in (1, 2))
    middle, low, high = geometric_mean(ratios)
    assert lowest * (1 - 1e-9) <= low <= middle * (1 + 1e-9)
    assert middle * (1 - 1e-9) <= high <= highest * (1 + 1e-9)


@given(ratios, st.integers(1, 20))
def test_alike_members_narrow_the_interval_by_the_root_of_their_number(ratio, count):
    middle, low, high = geometric_mean([ratio] * count)
    assert log(middle / low) == pytest.approx(log(ratio[0] / ratio[1]) / sqrt(count))
    assert log(high / middle) == pytest.approx(log(ratio[2] / ratio[0]) / sqrt(count))


def test_what_is_known_exactly_adds_no_doubt():
    middle, low, high = geometric_mean([(4.0, 2.0, 8.0), (1.0, 1.0, 1.0)])
    assert (middle, low, high) == pytest.approx((2.0, sqrt(2.0), sqrt(8.0)))


def test_there_is_no_mean_of_nothing():
    with pytest.raises(ValueError, match="no ratio"):
        geometric_mean([])


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
    true = exp(np.mean(np.log(truth)))
    covered = 0
    for _ in range(seeds):
        found = [
            interval(log(ratio) * np.ones(count) + rng.uniform(0.5, 2.0) * noise(rng, count), 0.95)
            for ratio, count in zip(truth, pairs, strict=True)
        ]
        _, low, high = geometric_mean([tuple(map(exp, one)) for one in found])
        covered += low <= true <= high
    # Three standard errors of a share of 95 %.
    assert covered / seeds >= 0.95 - 3 * sqrt(0.95 * 0.05 / seeds)
