"""The number of pairs of a comparison, and the cost of its looks."""

from math import exp

import numpy as np
import pytest

from autotune.comparison.pairs import latest_looks, pairs_affordable, pairs_wanted
from autotune.records.series import TUNING, Series
from autotune.records.study import Run
from autotune.statistics.signed_rank import null_distribution
from autotune.statistics.verdict import ratio_interval
from autotune.studyfile import VerdictSection
from tests.support.fakes import SECONDS, took

EIGHT = VerdictSection()


def drawn(rng, noise, ratio=1.0, tails="normal"):
    runs = rng.normal(size=(20, 2)) if tails == "normal" else rng.standard_t(3, size=(20, 2)) / 3**0.5
    return [(ratio * exp(one), exp(other)) for one, other in noise * runs]


def made(pairs, settings=EIGHT):
    """Return how many of these pairs a comparison makes, looking again whenever it has the pairs that it wanted."""
    count = 0
    while (wanted := pairs_wanted(pairs[:count], settings, SECONDS)) > count:
        count = wanted
    return count


def test_it_begins_with_the_least_number():
    assert pairs_wanted([], EIGHT, SECONDS) == 8
    assert pairs_wanted([(1.0, 1.0)] * 3, EIGHT, SECONDS) == 8


def test_it_looks_three_times_at_most_and_never_goes_beyond_the_most():
    assert latest_looks(EIGHT) == (8, 13, 20)
    assert latest_looks(VerdictSection(pairs=6, max_pairs=6)) == (6, 6, 6)
    noisy = drawn(np.random.default_rng(0), 1.0)
    assert [pairs_wanted(noisy[:count], EIGHT, SECONDS) for count in (0, 8, 13, 20)] == [8, 13, 20, 20]


def test_a_clear_winner_costs_far_fewer_pairs():
    rng = np.random.default_rng(1)
    noisy = [drawn(rng, 0.1, ratio=1.6) for _ in range(200)]
    precise = VerdictSection(of_gain=0.0)
    assert np.mean([made(pairs) for pairs in noisy]) < 0.65 * np.mean([made(pairs, precise) for pairs in noisy])


def test_pairs_of_earlier_sessions_change_nothing():
    rng = np.random.default_rng(2)
    for _ in range(100):
        pairs = drawn(rng, 0.06)
        assert pairs_wanted(pairs, EIGHT, SECONDS) == made(pairs)


@pytest.mark.parametrize("tails", ["normal", "heavy"])
@pytest.mark.parametrize("ratio", [1.0, 1.1, 1.6])
def test_the_interval_keeps_its_coverage_in_spite_of_looks(tails, ratio):
    rng = np.random.default_rng(3)
    covered, numbers, studies = 0, set(), 1000
    for _ in range(studies):
        pairs = drawn(rng, 0.06, ratio, tails)
        number = made(pairs)
        _, low, high = ratio_interval(pairs[:number], SECONDS, 0.95)
        covered += low <= ratio <= high
        numbers.add(number)
    assert covered / studies == pytest.approx(0.95, abs=0.02)
    assert min(numbers) == 8


def test_looks_bound_the_chance_of_a_false_gain_for_any_stopping_rule():
    # The joint distribution of signed ranks at the looks is the same for every noise.
    studies, looks = 100_000, latest_looks(EIGHT)
    noise = np.random.default_rng(4).normal(size=(studies, looks[-1]))
    gained = np.zeros(studies, dtype=bool)
    for count in looks:
        ranks = np.abs(noise[:, :count]).argsort(axis=1).argsort(axis=1) + 1
        statistic = np.where(noise[:, :count] < 0.0, ranks, 0).sum(axis=1)
        gained |= null_distribution(count)[statistic] <= 0.025
    assert 0.04 < gained.mean() < 0.05


def spent(series, seconds, count=1, trial=0):
    return [Run({"np": 8}, trial, series, outcome=took(seconds), job={"resources": {"cores": 1}})] * count


@pytest.mark.parametrize(
    ("tuning_s", "run_s", "most"),
    [
        (0.0, 20.0, 20),  # a study whose trials were recorded
        (500.0, 20.0, 8),  # the eight pairs cost more than half of it
        (1000.0, 20.0, 9),  # of 500 s, 60 s are left, and a pair costs 40 s
        (10000.0, 20.0, 20),
        (50.0, 2.0, 12),  # a minute is free, of which 16 s are left
    ],
)
def test_more_than_the_least_number_are_made_while_they_cost_half_of_the_tuning(tuning_s, run_s, most):
    runs = spent(Series.select([1, 2]), run_s, 6) + spent(Series.verdict(1), run_s, 16)
    runs += spent(TUNING, tuning_s) if tuning_s else []
    noisy = drawn(np.random.default_rng(0), 1.0)
    affordable = pairs_affordable([*runs, *spent(TUNING.aside, 900.0)], 8, EIGHT)
    assert pairs_wanted(noisy, EIGHT, SECONDS, affordable) == most
    assert pairs_wanted(noisy[:3], EIGHT, SECONDS, affordable) == 8
