"""The disturbance from which a run does not count follows from its effect on the runs of the study."""

from math import log

import numpy as np
import pytest

from autotune.statistics.sensitivity import ObservedRun, Sensitivity, sensitivity


def runs(effect, noise, shares, seed=0):
    """Return runs of three configurations whose values others move to the power of `effect`."""
    rng = np.random.default_rng(seed)
    return [
        ObservedRun(number % 3, number % 3 - effect * log(1.0 - share) + noise * rng.standard_normal(), share)
        for number, share in enumerate(shares)
    ]


QUIET = [0.001] * 20
SOME = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.3, 0.2, 0.0, 0.4, 0.0, 0.1]


def test_before_anything_ran_a_percent_is_too_much():
    assert Sensitivity().threshold == pytest.approx(0.01, abs=1e-3)
    assert sensitivity([]) == Sensitivity()


def test_the_effect_of_others_is_found_in_the_runs():
    for effect in (0.0, 1.0, 2.0):
        found = sensitivity(runs(effect, 0.02, SOME))
        assert found.effect == pytest.approx(effect, abs=0.2)
        assert found.noise == pytest.approx(0.02, abs=0.012)


def test_what_suffers_much_bears_little_and_what_is_noisy_anyway_bears_much():
    thresholds = [sensitivity(runs(effect, 0.02, SOME)).threshold for effect in (0.0, 1.0, 3.0)]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[0] > 5 * thresholds[2]
    assert sensitivity(runs(1.0, 0.2, QUIET)).threshold > 3 * sensitivity(runs(1.0, 0.02, QUIET)).threshold


def test_what_a_machine_always_takes_is_usual_but_a_busy_one_is_not():
    assert sensitivity(runs(1.0, 0.01, [0.04] * 12)).threshold > 0.04
    assert sensitivity(runs(1.0, 0.01, [0.5] * 12)).threshold < 0.1


def test_a_run_that_nobody_can_explain_does_not_make_all_others_count():
    wild = [*runs(1.0, 0.02, SOME), ObservedRun(0, 3.0, 0.0)]
    assert sensitivity(wild).threshold < 0.1
