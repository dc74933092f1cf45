import numpy as np
import pytest

from autotune.statistics.change import shift

NOISE, DAY = 0.02, 0.01


def checks(count, seed, size=4):
    rng = np.random.default_rng(seed)
    return [list(rng.normal(rng.normal(0.0, DAY), NOISE, 8 if number == 0 else size)) for number in range(count)]


def test_what_stays_as_it_is_is_no_shift():
    evidence = [shift(checks(12, seed), DAY).evidence for seed in range(40)]
    assert sum(value > 300 for value in evidence) == 0


def test_a_shift_is_found_with_its_size_and_its_beginning():
    found = []
    for seed in range(40):
        history = checks(15, seed)
        found.append(shift([[v + 0.05 * (n >= 10) for v in check] for n, check in enumerate(history)], DAY))
    assert sum(one.evidence > 300 for one in found) >= 34
    assert np.mean([one.size for one in found]) == pytest.approx(0.05, abs=0.005)
    assert sum(one.low <= 0.05 <= one.high for one in found) >= 36
    assert np.median([one.since for one in found]) == 10


def test_one_check_that_takes_twice_as_long_is_enough_even_where_runs_differ_much():
    rng = np.random.default_rng(3)
    history = [list(rng.normal(mean, 0.15, size)) for mean, size in ((0.0, 8), (0.0, 3), (1.0, 3))]
    assert shift(history, DAY).evidence > 300


def test_the_level_after_a_shift_is_not_that_of_a_reference_that_one_run_has_spoilt():
    rng = np.random.default_rng(5)
    reference = [*rng.normal(0.5, 0.02, 7), 0.5 + 1.6]
    checks = [reference, *(rng.normal(0.5, 0.02, 3) for _ in range(3)), *(rng.normal(-0.1, 0.02, 3) for _ in range(2))]
    found = shift(checks, 0.005)
    assert found.since == 4
    assert found.after[0] == pytest.approx(-0.1, abs=0.03)
    assert found.after[1] < -0.1 < found.after[2] < 0.0


def test_the_interval_of_the_level_holds_it_where_days_differ_by_more_than_the_guess():
    held = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        history = [rng.normal(rng.normal(-0.1 * (n > 5), 0.02), 0.014, size) for n, size in enumerate((8, *[3] * 8))]
        found = shift([list(check) for check in history], 0.005)
        held.append(found.after[1] <= -0.1 <= found.after[2])
    # With the guessed instead of the observed difference of days it was 0.58.
    assert np.mean(held) >= 0.85


def test_a_shift_that_is_far_beyond_doubt_has_its_size_and_its_beginning():
    rng = np.random.default_rng(1)
    history = [list(rng.normal(2.0 * (number >= 4), 0.003, 4)) for number in range(8)]
    found = shift(history, DAY)
    assert (found.since, found.size) == (4, pytest.approx(2.0, abs=0.02))
    assert found.high - found.low < 0.1


def test_one_run_that_is_disturbed_is_no_shift():
    history = checks(8, 1)
    before = shift(history, DAY).evidence
    history[-1][0] += 0.4
    assert shift(history, DAY).evidence < max(20.0, 4 * before)


def test_runs_that_are_exactly_alike_can_be_compared():
    same = [[1.0] * 8, [1.0] * 3]
    assert shift(same, DAY).evidence < 2
    assert shift([*same, [1.2] * 3], DAY).evidence > 300


def test_a_shift_needs_a_reference_and_a_check():
    with pytest.raises(ValueError, match="at least one check"):
        shift([[1.0]], DAY)
