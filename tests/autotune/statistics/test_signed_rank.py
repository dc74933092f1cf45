from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from autotune.statistics.signed_rank import interval, least_pairs, null_distribution

# Hamilton depression scale before and after a tranquillizer: Hollander & Wolfe, table 3.1, and R's ?wilcox.test.
BEFORE = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
AFTER = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)

some = st.lists(st.floats(-10, 10), min_size=6, max_size=20)


@pytest.mark.parametrize("pairs", range(1, 9))
def test_the_null_distribution_is_that_of_all_signs(pairs):
    statistics = [sum(rank for rank, sign in enumerate(signs, 1) if sign) for signs in product((0, 1), repeat=pairs)]
    counts = np.bincount(statistics, minlength=pairs * (pairs + 1) // 2 + 1)
    assert null_distribution(pairs) == pytest.approx(np.cumsum(counts) / 2**pairs)


@given(st.lists(st.booleans(), min_size=6, max_size=14), st.randoms())
def test_the_interval_excludes_zero_when_scipy_s_test_rejects_it(signs, random):
    ranks = list(range(1, len(signs) + 1))
    random.shuffle(ranks)
    differences = [float(rank if sign else -rank) for rank, sign in zip(ranks, signs, strict=True)]
    _, low, high = interval(differences, 0.95)
    assert (low > 0 or high < 0) == (stats.wilcoxon(differences, method="exact").pvalue <= 0.05)


def test_the_interval_is_that_of_the_textbook():
    # R: wilcox.test(after, before, paired = TRUE, conf.int = TRUE); k = 6 of 45, as P(T <= 5) = 10 / 512.
    differences = [after - before for before, after in zip(BEFORE, AFTER, strict=True)]
    assert interval(differences, 0.95) == pytest.approx((-0.46, -0.786, -0.010), abs=1e-9)


def test_six_pairs_give_the_least_and_the_greatest_difference():
    assert interval([1.0, 2.0, 3.0, 4.0, 5.0, 60.0], 0.95)[1:] == (1.0, 60.0)


@pytest.mark.parametrize("noise", ["heavy tails", "skewed runs"])
@pytest.mark.parametrize("pairs", [8, 15])
def test_the_interval_covers_exactly_as_often_as_the_ranks_say(noise, pairs):
    rng = np.random.default_rng(1)
    shape = (2000, pairs)
    drawn = (
        rng.standard_t(2, shape)
        if noise == "heavy tails"
        else rng.exponential(size=shape) - rng.exponential(size=shape)
    )
    ends = np.array([interval(row, 0.95)[1:] for row in 0.3 + drawn])
    covered = np.mean((ends[:, 0] <= 0.3) & (ends[:, 1] >= 0.3))
    tail = max(p for p in null_distribution(pairs) if p <= 0.025)
    assert covered == pytest.approx(1 - 2 * tail, abs=0.013)


@given(some, st.floats(-100, 100))
def test_a_shift_of_all_differences_shifts_the_interval(differences, shift):
    shifted = interval([difference + shift for difference in differences], 0.95)
    assert shifted == pytest.approx([end + shift for end in interval(differences, 0.95)], abs=1e-9)


@given(some)
def test_exchanging_the_sides_turns_the_interval_round(differences):
    middle, low, high = interval(differences, 0.95)
    assert interval([-difference for difference in differences], 0.95) == pytest.approx((-middle, -high, -low))


@given(some, st.floats(0.6, 0.95))
def test_the_estimate_lies_in_its_interval(differences, confidence):
    middle, low, high = interval(differences, confidence)
    assert low <= middle <= high


@given(st.lists(st.floats(-1, 1), min_size=6, max_size=19), st.floats(0, 1e12))
def test_no_outlier_moves_the_estimate_nor_the_end_on_the_other_side_without_limit(differences, size):
    middle, low, _ = interval([*differences, 1.0 + size], 0.95)
    assert -1.0 <= low <= middle <= 1.0


@given(st.lists(st.floats(-1, 1), min_size=11, max_size=19), st.floats(0, 1e12), st.sampled_from([-1.0, 1.0]))
def test_from_twelve_pairs_on_no_outlier_moves_either_end_without_limit(differences, size, sign):
    _, low, high = interval([*differences, sign * (1.0 + size)], 0.95)
    assert -1.0 <= low <= high <= 1.0


@pytest.mark.parametrize(("confidence", "least"), [(0.75, 3), (0.9, 5), (0.95, 6), (0.99, 8)])
def test_too_few_pairs_for_the_confidence_are_refused(confidence, least):
    assert least_pairs(confidence) == least
    low, high = interval(list(range(least)), confidence)[1:]
    assert (low, high) == (0.0, least - 1.0)
    with pytest.raises(ValueError, match=f"needs {least} pairs, got {least - 1}"):
        interval([0.1] * (least - 1), confidence)
