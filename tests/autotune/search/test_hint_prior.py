"""The prior mean from hints: its predictions for similar configurations, and its effect on a search."""

import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.hint_prior import HintPrior, have_paid
from autotune.storage.observation import Observation
from spaces import Choice, Constraint, Integer, Space

SPACE = Space(
    [
        Integer.range("np", 1, 24, default=1),
        Integer.powers_of_two("block", 1, 128, default=1),
        Choice("blas", ("slow", "fast", "fastest"), default="slow", optional=True),
    ],
    [Constraint("cores", "np <= 12 or block <= 16", "memory")],
)
ROWS = SPACE.all_indices()
FAST = [one for one in SPACE.configurations() if one["block"] == 16 and one.get("blas") == "fast"]
GOOD = [one for one in FAST if 7 <= one["np"] <= 9]
DEFAULT = SPACE.default()


def rows(configurations):
    return SPACE.indices(configurations)


def history(*trials):
    configurations, values = zip(*trials, strict=True)
    told = [Observation(value) if value is not None else Observation() for value in values]
    return History(rows(configurations), told, StudyDirection.MINIMIZE)


def test_what_is_like_the_hints_is_expected_to_be_good():
    hints = rows(GOOD * 5)
    field = HintPrior(SPACE, hints).fields(ROWS)
    assert field.shape == (len(ROWS), 1)
    best = SPACE.decode(ROWS[[int(field[:, 0].argmin())]])[0]
    assert (best["np"], best["block"], best.get("blas")) == (8, 16, "fast")
    assert field.min() == pytest.approx(0.0, abs=1e-9)
    near = HintPrior(SPACE, hints).fields(rows([{"np": 10, "block": 16, "blas": "fast"}]))
    far = HintPrior(SPACE, hints).fields(rows([{"np": 20, "block": 1}]))
    assert near < far


def test_hints_drawn_at_random_say_nothing_and_few_say_less_than_many():
    def spread(hints):
        return float(HintPrior(SPACE, hints).fields(ROWS).std())

    random = [spread(np.random.default_rng(seed).permutation(ROWS)[:40]) for seed in range(10)]
    many, one = spread(rows(GOOD * 10)), spread(rows(GOOD[:1]))
    assert np.median(random) < 0.1 * many
    assert one < many


def test_hints_are_followed_once_they_were_better_than_what_was_tried_without_them():
    hinted = np.array([False, True, False, True])
    assert have_paid(hinted, np.array([2.0, 0.5, 1.0, np.nan]))
    assert not have_paid(hinted, np.array([2.0, 1.5, 1.0, np.nan])), "the search found better by itself"
    assert not have_paid(hinted, np.array([2.0, np.inf, 1.0, np.nan])), "it failed"
    assert not have_paid(hinted, np.array([2.0, np.nan, 1.0, np.nan])), "it has not ended"
    assert not have_paid(hinted, np.array([2.0, 0.5, np.nan, 0.4])), "there is nothing to compare it with"
    assert not have_paid(hinted[:2], np.array([2.0, 0.5]))
    assert have_paid(hinted, np.array([2.0, 0.5, np.inf, 0.4]))


def test_good_hints_lead_the_search_and_bad_ones_do_not_change_it():
    own = {"np": 20, "block": 1, "blas": "slow"}
    led, alone = ValidSetSampler(SPACE, seed=1), ValidSetSampler(SPACE, seed=1)
    led.set_hints(rows(GOOD * 5))
    good = history((DEFAULT, 10.0), (GOOD[0], 2.0), (own, 9.0))
    assert led.follows_hints(good)
    proposed = led.propose(good)
    assert (proposed["block"], proposed.get("blas")) == (16, "fast")
    bad = history((DEFAULT, 10.0), (GOOD[0], 20.0), (own, 9.0))
    assert not led.follows_hints(bad)
    assert led.propose(bad) == alone.propose(bad)
    led.set_hints(rows([]))
    assert not led.follows_hints(good)
    assert led.propose(good) == alone.propose(good)


def test_what_measurements_contradict_is_not_followed_further():
    sampler, alone = ValidSetSampler(SPACE, seed=1, startup=3), ValidSetSampler(SPACE, seed=1, startup=3)
    sampler.set_hints(rows(GOOD * 5))
    wrong = [({"np": k, "block": 16, "blas": "fast"}, 9.0 + k) for k in (10, 11, 12, 6, 5)]
    right = [({"np": k, "block": 1, "blas": "fastest"}, 5.0) for k in (18, 19, 20)]
    told = history((DEFAULT, 10.0), (GOOD[0], 8.9), ({"np": 24, "block": 1, "blas": "slow"}, 9.0), *wrong, *right)
    assert sampler.follows_hints(told)
    assert sampler.propose(told) == alone.propose(told)
