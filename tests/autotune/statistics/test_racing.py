from dataclasses import replace
from math import inf, log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from autotune.statistics.mixed_model import MeasuredRun, Spread, fit
from autotune.statistics.racing import RaceRules, Standing, losing_value, standing

NOISE = 0.03
RULES = RaceRules(min_runs=1, max_runs=8, error_rate=0.1, min_gain=0.01)
INCUMBENT, CHALLENGER = 0, 1

values = st.floats(-1, 1)
# Each example fits a model.
few = settings(max_examples=30)


def known(incumbent, challenger, statistic="median", noise=NOISE):
    """Return effects of a machine that does not drift and whose noise is known."""
    samples = [MeasuredRun(INCUMBENT, 0, float(value)) for value in incumbent]
    samples += [MeasuredRun(CHALLENGER, 0, float(value)) for value in challenger]
    found = fit(samples, statistic)
    return replace(found, spread=Spread(noise, 1e6))


def race(incumbent, challenger, statistic):
    """Look after every run, the incumbent being repeated as in the agenda; return the standing and the runs."""
    first, second = 3, 1
    while True:
        found = standing(known(incumbent[:first], challenger[:second], statistic), CHALLENGER, INCUMBENT, RULES)
        if found is not Standing.OPEN:
            return found, second
        if second > first and first < RULES.max_runs:
            first += 1
        else:
            second += 1


def races(difference, statistic="median", count=400, seed=1):
    """Race challengers of the given true differences; return (standing, runs, standing after all runs)."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        incumbent = rng.normal(0, NOISE, RULES.max_runs)
        challenger = rng.normal(difference(rng), NOISE, RULES.max_runs)
        full = standing(known(incumbent, challenger, statistic), CHALLENGER, INCUMBENT, RULES)
        found.append((*race(incumbent, challenger, statistic), full))
    return found


@pytest.mark.full
@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_a_race_that_was_ended_early_is_seldom_decided_wrongly_however_often_one_looked(statistic):
    # Draw differences around the hardest cases; with larger ones hardly any race is decided wrongly.
    ended = races(lambda rng: rng.uniform(-0.06, 0.04), statistic, count=3000)
    early = [(found, full) for found, runs, full in ended if runs < RULES.max_runs]
    wrong = np.mean([found is not full for found, full in early])
    assert len(early) > 2000
    assert wrong <= RULES.error_rate + 0.01


@pytest.mark.slow
def test_a_clearly_slower_challenger_costs_one_run_and_a_tie_more():
    slower = [runs for _, runs, _ in races(lambda rng: 0.3)]
    tie = [runs for _, runs, _ in races(lambda rng: -log(1 + RULES.min_gain))]
    assert np.mean(slower) == 1
    assert np.mean(tie) > 2


def test_a_clearly_better_challenger_wins_at_once():
    assert {(found, runs) for found, runs, _ in races(lambda rng: -0.3, count=50)} == {(Standing.WON, 1)}


@few
@given(st.lists(values, min_size=1, max_size=12), st.lists(values, min_size=1, max_size=8), st.integers(1, 8))
def test_no_race_goes_on_after_the_greatest_number_of_runs(incumbent, challenger, max_runs):
    rules = replace(RULES, max_runs=max_runs)
    found = standing(known(incumbent, challenger, noise=1.0), CHALLENGER, INCUMBENT, rules)
    assert found is not Standing.OPEN or len(challenger) < max_runs


def test_no_race_ends_before_the_least_number_of_runs():
    rules = replace(RULES, min_runs=3)
    standings = [standing(known([0.0] * 8, [9.0] * runs), CHALLENGER, INCUMBENT, rules) for runs in (1, 2, 3)]
    assert standings == [Standing.OPEN, Standing.OPEN, Standing.LOST]
    caps = [losing_value(known([0.0] * 8, [0.5] * runs), CHALLENGER, INCUMBENT, 0, rules) for runs in (0, 1, 2)]
    assert [cap == inf for cap in caps] == [True, True, False]


@pytest.mark.parametrize(("gain", "found"), [(0.005, Standing.LOST), (0.02, Standing.WON)])
def test_a_gain_that_does_not_matter_is_no_win(gain, found):
    assert standing(known([0.0] * 8, [-gain] * 8), CHALLENGER, INCUMBENT, RULES) is found


@few
@given(st.lists(values, min_size=1, max_size=8), st.lists(values, max_size=1), st.floats(0.01, 0.4))
def test_the_cap_is_where_one_more_run_makes_the_challenger_lose(incumbent, before, error_rate):
    rules = replace(RULES, error_rate=error_rate)
    cap = losing_value(known(incumbent, before), CHALLENGER, INCUMBENT, 0, rules)
    assert cap < inf
    above, below = known(incumbent, [*before, cap + 1e-6]), known(incumbent, [*before, cap - 1e-6])
    assert standing(above, CHALLENGER, INCUMBENT, rules) is Standing.LOST
    assert standing(below, CHALLENGER, INCUMBENT, rules) is not Standing.LOST


@few
@given(
    st.lists(values, min_size=1, max_size=8),
    st.lists(values, min_size=2, max_size=7),
    st.sampled_from(["median", "mean"]),
)
def test_any_later_run_beyond_its_cap_makes_the_challenger_lose(incumbent, before, statistic):
    cap = losing_value(known(incumbent, before, statistic), CHALLENGER, INCUMBENT, 0, RULES)
    assume(cap < inf)
    for beyond in (1e-6, 0.5, 50.0):
        found = known(incumbent, [*before, cap + beyond], statistic)
        assert standing(found, CHALLENGER, INCUMBENT, RULES) is Standing.LOST


def test_a_run_that_cannot_change_the_median_has_no_cap():
    # For any third run the median of three is at most 0.01.
    found = known([0.5] * 8, [0.0, 0.01])
    assert losing_value(found, CHALLENGER, INCUMBENT, 0, RULES) == inf


@few
@given(st.integers(0, 2**32 - 1))
def test_in_a_slow_block_a_first_run_may_take_longer(seed):
    rng = np.random.default_rng(seed)
    samples = [MeasuredRun(n, b, float(rng.normal(0.2 * b, 0.01))) for n in (0, 2, 3) for b in (0, 0, 1, 1)]
    found = fit(samples)
    caps = {block: losing_value(found, CHALLENGER, INCUMBENT, block, RULES) for block in (0, 1, 7)}
    for block, cap in caps.items():
        ran = fit([*samples, MeasuredRun(CHALLENGER, block, cap + 1e-6)])
        assert standing(ran, CHALLENGER, INCUMBENT, RULES) is Standing.LOST
    assert caps[1] > max(found.values(INCUMBENT, 1))
    # The speed of the machine in a new block is unknown: a run may take longer there, too.
    assert caps[7] > found.center(INCUMBENT) + 0.1


def test_shortly_before_the_last_run_little_can_change():
    def found(runs):
        return standing(known([0.0] * 8, [0.002] * runs, "mean"), CHALLENGER, INCUMBENT, RULES)

    assert (found(2), found(7)) == (Standing.OPEN, Standing.LOST)


def test_what_is_less_certain_stays_open_longer():
    def found(noise):
        return standing(known([0.0] * 3, [0.05], noise=noise), CHALLENGER, INCUMBENT, RULES)

    assert (found(0.01), found(0.1)) == (Standing.LOST, Standing.OPEN)
