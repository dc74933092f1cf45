from math import gcd

import numpy as np
import optuna
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.exhaustive_sampler import ExhaustiveSampler, stride
from autotune.search.suggest import ask
from spaces import Constraint, Integer, Space

optuna.logging.set_verbosity(optuna.logging.WARNING)


@given(size=st.integers(1, 100_000), share=st.floats(0.001, 1.0))
def test_every_beginning_is_spread_over_the_list(size, share):
    step = stride(size)
    assert gcd(step, size) == 1
    count = max(1, int(share * size))
    places = np.sort(np.arange(count) * step % size)
    gaps = np.diff(np.append(places, size + places[0]))
    assert gaps.max() <= 3 * size / count
    assert len(set(gaps.tolist())) <= 3


def test_an_early_end_has_seen_every_value_of_every_parameter_and_most_pairs():
    space = Space([Integer.range(f"p{k}", 0, 7, default=5) for k in range(4)])
    study = optuna.create_study(sampler=ExhaustiveSampler(space))
    tried = [tuple(ask(study, space).params.values()) for _ in range(64)]
    assert tried[0] == (5, 5, 5, 5)
    for column in range(4):
        counts = np.bincount([row[column] for row in tried], minlength=8)
        assert counts.min() >= 4
    assert len({row[:2] for row in tried}) >= 56


def test_what_was_tried_by_another_sampler_is_not_tried_again():
    space = Space([Integer.range("x", 1, 9, default=4)], [Constraint("odd", "x != 6", "for the sake of it")])
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.add_trials(
        [
            optuna.trial.create_trial(
                value=1.0, params={"x": x}, distributions={"x": optuna.distributions.IntDistribution(1, 9)}
            )
            for x in (4, 9, 2)
        ]
    )
    study.sampler = ExhaustiveSampler(space)
    assert {ask(study, space).params["x"] for _ in range(5)} == {1, 3, 5, 7, 8}
