import math

import numpy as np
import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.samplers import BaseSampler
from optuna.trial import TrialState

from autotune.search.codec import Codec
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.mirror_study import InnerSampler
from autotune.search.optuna_adapter import AdaptedSampler
from autotune.search.registry import sampler_of
from autotune.search.suggest import ask
from autotune.storage.observation import BOUND, Observation
from autotune.studyfile import SamplerSection
from spaces import Choice, Constraint, Flag, Float, Integer, Space

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = Space(
    [
        Integer.powers_of_two("tile", 1, 64, default=8),
        Integer.range("threads", 1, 4, default=1, optional=True),
        Choice("blas", ("slow", "fast"), optional=True),
        Float("rate", 0.1, 10.0, log=True, points=5, default=1.0),
        Flag("pinned", default=False),
        Integer("fixed", (3,), default=3),
    ],
    [Constraint("registers", "tile * threads <= 64", "there are no more")],
)


class Noting(BaseSampler):
    """Always proposes the same configuration, and records the trials that it sees."""

    def __init__(self, seen, proposal):
        self.seen, self.proposal = seen, proposal

    def infer_relative_search_space(self, study, trial):
        return {}

    def sample_relative(self, study, trial, search_space):
        self.seen[:] = [other for other in study.get_trials(deepcopy=False) if other.number != trial.number]
        return {}

    def sample_independent(self, study, trial, param_name, param_distribution):
        return self.proposal[param_name]


def noting(proposal, *, remembers=False, space=SPACE):
    seen = []
    inner = InnerSampler(lambda seed: Noting(seen, proposal), remembers=remembers)
    study = optuna.create_study(sampler=AdaptedSampler(space, inner, startup=0))
    return study, seen


PROPOSAL = {"tile": 6, "threads": 3, "threads is set": 1, "blas": -1, "rate": 2, "pinned": 1}


@pytest.mark.parametrize("remembers", [False, True])
def test_an_inner_sampler_is_told_what_became_of_what_was_tried(remembers):
    study, seen = noting(PROPOSAL, remembers=remembers)
    trials = [ask(study, SPACE)]
    study.tell(trials[0], 4.0)
    trials += [ask(study, SPACE) for _ in range(5)]
    study.tell(trials[1], 1.0)
    study.tell(trials[2], state=TrialState.FAIL)
    trials[3].set_user_attr(BOUND, 2.0)
    study.tell(trials[3], state=TrialState.PRUNED)
    study.sampler.learn({5: Observation(value=3.0, runs=2)})
    ask(study, SPACE)
    assert [trial.state for trial in seen] == [*[TrialState.COMPLETE] * 4, TrialState.RUNNING, TrialState.COMPLETE]
    values = [trial.value for trial in seen]
    assert values[0] == pytest.approx(math.log(4.0))
    assert values[1] == pytest.approx(0.0)
    assert values[2] > values[0]
    assert values[3] == pytest.approx(math.log(2.0))
    assert values[5] == pytest.approx(math.log(3.0))
    codec = Codec(SPACE)
    told = [codec.encode(row) for row in SPACE.indices([trial.params for trial in trials])]
    assert [trial.params for trial in seen] == told


def test_what_is_to_be_maximised_is_told_with_the_other_sign():
    seen = []
    inner = InnerSampler(lambda seed: Noting(seen, PROPOSAL), remembers=False)
    study = optuna.create_study(direction="maximize", sampler=AdaptedSampler(SPACE, inner, startup=0))
    for value in (2.0, 8.0):
        study.tell(ask(study, SPACE), value)
    ask(study, SPACE)
    assert seen[0].value > seen[1].value


def test_a_proposal_becomes_the_nearest_valid_one():
    # 64 with 4 threads breaks the rule. 16 with 4 is two of six steps away, 64 with unset threads is farther.
    study, _ = noting(PROPOSAL)
    ask(study, SPACE)
    wanted = {"tile": 64, "threads": 4, "rate": 1.0, "pinned": True, "fixed": 3}
    found = ask(study, SPACE).params
    assert not SPACE.contains(wanted)
    rows = SPACE.encode([*SPACE.configurations(), wanted])
    distances = np.linalg.norm(rows[:-1] - rows[-1], axis=1)
    assert np.linalg.norm(SPACE.encode([found])[0] - rows[-1]) == pytest.approx(distances.min())


def test_a_proposal_that_is_valid_and_new_is_taken():
    study, _ = noting({**PROPOSAL, "threads": 0})
    ask(study, SPACE)
    wanted = {"tile": 64, "threads": 1, "rate": 1.0, "pinned": True, "fixed": 3}
    assert ask(study, SPACE).params == wanted


def test_a_proposal_is_kept_in_a_space_too_large_to_list():
    space = Space([Integer.range(f"p{k}", 0, 30, default=0) for k in range(8)])
    study, _ = noting({f"p{k}": 3 * k for k in range(8)}, space=space)
    trials = [ask(study, space).params for _ in range(4)]
    assert trials[1] == {f"p{k}": 3 * k for k in range(8)}
    for trial in trials[2:]:
        assert sum(abs(trial[f"p{k}"] - 3 * k) for k in range(8)) <= 2


@pytest.mark.parametrize("numeric", [False, True])
@given(data=st.data())
def test_every_configuration_survives_the_codec(numeric, data):
    codec = Codec(SPACE, numeric=numeric)
    row = data.draw(st.sampled_from(list(SPACE.all_indices())))
    values = codec.encode(row)
    assert codec.decode(values).tolist() == row.tolist()
    assert values.keys() == codec.distributions.keys()
    assert all(one._contains(one.to_internal_repr(values[name])) for name, one in codec.distributions.items())


def test_words_are_numbers_for_samplers_that_know_only_those():
    distributions = Codec(SPACE, numeric=True).distributions.values()
    assert not any(isinstance(one, optuna.distributions.CategoricalDistribution) for one in distributions)


@pytest.mark.full
def test_tpe_beats_random_on_the_mean_of_many_seeds():
    space = Space(
        [Integer.range("x", 0, 99, default=99), Integer.range("y", 0, 99, default=99)],
        [Constraint("corner", "x + y >= 60", "there is nothing")],
    )

    def found(sampler):
        study = optuna.create_study(sampler=sampler)
        for _ in range(40):
            trial = ask(study, space)
            study.tell(trial, 1 + ((trial.params["x"] - 30) / 50) ** 2 + ((trial.params["y"] - 60) / 50) ** 2)
        return study.best_value

    settings = [SamplerSection(name="tpe", seed=seed) for seed in range(8)]
    guided = np.mean([found(sampler_of(space, one)) for one in settings])
    random = np.mean([found(ValidSetSampler(space, seed=seed, model=False)) for seed in range(8)])
    assert guided < random
