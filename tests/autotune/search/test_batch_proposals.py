import numpy as np
import pytest
from optuna.study import StudyDirection

from autotune.search import gp_sampler as sampler_module
from autotune.search.base import History
from autotune.search.batch_proposals import CROWD, BatchProposals
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.gaussian_process import GaussianProcess
from autotune.storage.observation import Observation
from spaces import Integer, Space

SQUARE = Space([Integer.range(name, 1, 40, default=1) for name in ("x", "y")])
RUNNING = Observation(pending=True)


def seconds(configuration):
    return 1.0 + (configuration["x"] - 20) ** 2 / 100 + (configuration["y"] - 30) ** 2 / 100


def history(ended, running, seed=0):
    """Return ended and running trials in random places."""
    rows = SQUARE.sample_indices(np.random.default_rng(seed), ended + running)
    values = [Observation(value=seconds(one)) for one in SQUARE.decode(rows[:ended])]
    return History(rows, [*values, *[RUNNING] * running], StudyDirection.MINIMIZE)


def proposed(sampler, told, count):
    """Return the rows of `count` proposals while no run ends."""
    found = []
    for _ in range(count):
        row = SQUARE.indices([sampler.propose(told)])
        found.append(row[0])
        told = History(np.concatenate([told.rows, row]), [*told.observations, RUNNING], told.direction)
    return np.array(found)


@pytest.fixture
def fits(monkeypatch):
    """Count the models that are fitted."""
    made = []

    def counting(*arguments, **options):
        made.append(arguments)
        return original(*arguments, **options)

    original = sampler_module.fit_model
    monkeypatch.setattr(sampler_module, "fit_model", counting)
    return made


def test_many_proposals_come_from_one_model_until_enough_runs_have_ended(fits):
    sampler, told = ValidSetSampler(SQUARE), history(60, 50)
    proposed(sampler, told, 4)
    assert len(fits) == 1
    nearly = history(64, 50)
    proposed(sampler, nearly, 1)
    assert len(fits) == 1
    proposed(sampler, history(65, 50), 1)
    assert len(fits) == 2


def test_with_few_runs_in_flight_every_proposal_has_a_model_of_its_own(fits):
    proposed(ValidSetSampler(SQUARE), history(30, CROWD - 5), 4)
    assert len(fits) == 4


def test_who_waits_for_a_proposal_is_as_good_as_in_flight(fits):
    sampler = ValidSetSampler(SQUARE)
    sampler._waiting = lambda: CROWD
    # Without running trials, the first proposals of a plan are those of its model.
    found = proposed(sampler, history(300, 0), 6)
    assert len({row.tobytes() for row in found}) == 6
    assert len(fits) == 1
    # Six new results are few beside 300 known ones, but many beside 60.
    proposed(sampler, history(305, 0), 1)
    assert len(fits) == 1
    proposed(sampler, history(306, 6), 1)
    assert len(fits) == 2


def test_what_one_plan_proposes_is_new_valid_and_not_all_in_one_place():
    told = history(60, 100)
    found = proposed(ValidSetSampler(SQUARE), told, 40)
    assert len({row.tobytes() for row in np.concatenate([told.rows, found])}) == len(told.rows) + 40
    assert SQUARE.valid_indices(found).all()
    # By chance one in thirty would be so near to the best; near running trials the model has no uncertainty left.
    near = np.abs(found - [19, 29]).max(1) <= 3
    assert 10 <= near.sum() <= 30


def test_a_running_trial_takes_away_doubt_as_if_it_were_measured():
    sampler, told, rng = ValidSetSampler(SQUARE), history(40, 30), np.random.default_rng(1)
    scored = sampler.score_candidates(told, rng, believing=False)
    plan = BatchProposals(scored, told.rows, rng)
    more = plan.best(told.rows, 1)
    rows = np.concatenate([told.rows, more])
    plan.best(rows, 1)
    process = scored.model.surrogate
    joined = GaussianProcess.of(process.kernel, SQUARE.traits_of(rows), np.zeros(len(rows)), np.ones(len(rows)))
    _, deviation = joined.predict(SQUARE.traits_of(plan._candidates))
    left = np.isfinite(plan._weights)
    assert left.sum() == len(left) - 1
    assert np.sqrt(plan._variance[left]) == pytest.approx(deviation[left] / joined.scale, rel=1e-5)


def test_what_others_have_proposed_meanwhile_is_not_proposed_again_however_much_that_is():
    sampler, told, rng = ValidSetSampler(SQUARE), history(40, 30), np.random.default_rng(1)
    plan = BatchProposals(sampler.score_candidates(told, rng, believing=False), told.rows, rng)
    rows = np.concatenate([told.rows, plan.best(told.rows, 50)])
    known = {row.tobytes() for row in rows}
    assert known.isdisjoint(row.tobytes() for row in plan.best(rows, 50))


def test_a_plan_is_of_no_use_for_a_shorter_history():
    sampler, told, rng = ValidSetSampler(SQUARE), history(40, 30), np.random.default_rng(1)
    plan = BatchProposals(sampler.score_candidates(told, rng, believing=False), told.rows, rng)
    assert plan.serves(told.rows, 40)
    assert not plan.serves(told.rows[:-1], 40)


def test_the_last_configurations_of_a_space_are_found_among_many_trials():
    rows = SQUARE.all_indices()
    nearly = History(
        rows[:-3],
        [Observation(value=1.0 + k % 7) for k in range(len(rows) - 33)] + [RUNNING] * 30,
        StudyDirection.MINIMIZE,
    )
    found = proposed(ValidSetSampler(SQUARE), nearly, 3)
    assert {row.tobytes() for row in found} == {row.tobytes() for row in rows[-3:]}


def test_a_random_search_finds_the_last_configurations_too():
    cube = Space([Integer.range(name, 1, 14, default=1) for name in ("x", "y", "z")])
    rows = cube.all_indices()
    nearly = History(rows[:-2], [Observation(value=1.0)] * (len(rows) - 2), StudyDirection.MINIMIZE)
    found = cube.indices([ValidSetSampler(cube, model=False).propose(nearly)])
    assert found[0].tobytes() in {row.tobytes() for row in rows[-2:]}
