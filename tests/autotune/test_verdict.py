from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.verdict import Verdict, order_of_pair, ratio_interval
from objectives.base import Metric

SECONDS = Metric("wall_s", "s")
RATE = Metric("rate", "1/s", "maximize")
positive = st.floats(0.01, 100)


def test_the_interval_is_students_t():
    # By hand: mean 0.1, standard deviation 0.1, n = 3, t(0.975, 2) = 4.30265.
    speed_up, low, high = ratio_interval([0.0, 0.1, 0.2], 0.95)
    half = 4.30265 * 0.1 / 3**0.5
    assert speed_up == pytest.approx(exp(0.1))
    assert (low, high) == (pytest.approx(exp(0.1 - half), rel=1e-5), pytest.approx(exp(0.1 + half), rel=1e-5))


def test_one_pair_has_no_interval():
    with pytest.raises(ValueError, match="two ratios"):
        ratio_interval([0.1], 0.95)


def test_the_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        _, low, high = ratio_interval(list(rng.normal(0.1, 0.05, 5)), 0.95)
        covered += low <= exp(0.1) <= high
    assert 0.93 <= covered / 2000 <= 0.97


@given(st.lists(st.tuples(positive, positive), min_size=2, max_size=8))
def test_direction_turns_the_ratio_round(pairs):
    slower = Verdict(3, 0.95, tuple(pairs)).interval(SECONDS)
    higher = Verdict(3, 0.95, tuple(pairs)).interval(RATE)
    assert slower[0] == pytest.approx(1 / higher[0])


@given(st.lists(st.tuples(positive, positive), max_size=8))
def test_what_is_stored_is_what_is_read(pairs):
    verdict = Verdict(3, 0.9, tuple(pairs), ("x",))
    assert Verdict.from_dict(verdict.to_dict()) == verdict


def test_noise_is_not_called_a_gain():
    verdict = Verdict(3, 0.95, ((1.0, 1.02), (1.0, 0.97), (1.0, 1.01), (1.0, 0.99), (1.0, 1.0)))
    assert not verdict.significant(SECONDS)
    assert "No significant gain" in verdict.sentence(SECONDS)


def test_a_clear_gain_is_called_one():
    verdict = Verdict(3, 0.95, ((2.0, 1.02), (2.0, 0.97), (2.0, 1.01), (2.0, 0.99), (2.0, 1.0)))
    assert verdict.significant(SECONDS)
    assert verdict.sentence(SECONDS).startswith("2.00")


def test_both_orders_occur():
    assert len({order_of_pair(0, pair) for pair in range(20)}) == 2
