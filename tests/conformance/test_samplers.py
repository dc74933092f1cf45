"""Every sampler proposes valid, new configurations, also after failures, and continues after an interruption."""

from dataclasses import replace
from importlib.util import find_spec

import optuna
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from optuna.trial import TrialState

from autotune.search.base import SpaceExhaustedError
from autotune.search.registry import sampler_of
from autotune.search.suggest import ask, suggest
from autotune.storage.observation import BOUND, Observation
from autotune.studyfile import SAMPLERS, SamplerSection
from spaces import Choice, Constraint, Flag, Float, Integer, Space, SpaceError
from tests.spaces.strategies import spaces_parts

optuna.logging.set_verbosity(optuna.logging.WARNING)

NEEDED = {"gp": "torch", "cmaes": "cmaes"}
OTHERS = ("RandomSampler", "NSGAIISampler", "NSGAIIISampler", "QMCSampler", "BruteForceSampler")
NAMES = (*SAMPLERS, *(f"optuna:{name}" for name in OTHERS))
FIRST = 3  # random trials, so that a dozen trials reach the sampler's own method
# Small populations, so that a dozen trials reach the second generation.
OPTIONS = {
    "cmaes": {"popsize": 4},
    "optuna:NSGAIISampler": {"population_size": 4},
    "optuna:NSGAIIISampler": {"population_size": 4},
}

MIXED = Space(
    [
        Integer.powers_of_two("batch", 8, 256, default=32),
        Float("rate", 1e-4, 1e-1, log=True, points=7, default=1e-3),
        Choice("kind", ("adam", "sgd", "lamb"), default="adam", optional=True),
        Float("momentum", 0.0, 0.9, points=4, when="is_set(kind) and kind == 'sgd'"),
        Flag("amp", optional=True),
        Integer("fixed", (7,), default=7),
    ],
    [Constraint("memory", "batch <= 128 or amp", "large batches need half precision")],
)
LARGE = Space(
    [
        *(Integer.range(f"p{k}", 0, 30, default=0) for k in range(6)),
        Choice("kind", ("a", "b", "c"), optional=True),
    ],
    [Constraint("sum", "p0 + p1 <= p2 + 20", "for the sake of it")],
)
TINY = Space(
    [Integer.range("np", 1, 6, default=6), Integer.range("npool", 1, 6, optional=True)],
    [Constraint("whole", "np % npool == 0", "every pool has the same number of ranks")],
)
# Without a constraint a sampler may know by itself that it has seen everything.
FREE = Space([Integer("p0", (0,), default=0, optional=True), Choice("p1", ("plain", "tf"), optional=True)])


@pytest.fixture(params=NAMES)
def chosen(request):
    package = NEEDED.get(request.param)
    if package and find_spec(package) is None:
        pytest.skip(f"needs {package}")
    return SamplerSection(name=request.param, seed=5, startup=FIRST, options=OPTIONS.get(request.param, {}))


def studied(chosen, space):
    return optuna.create_study(sampler=sampler_of(space, chosen))


def key(configuration):
    return tuple(sorted(configuration.items()))


def cost(configuration):
    return 1.0 + sum(len(str(value)) + 0.1 * number for number, value in enumerate(configuration.values()))


def end(study, trial, how, value=None):
    match how:
        case "complete":
            study.tell(trial, cost(trial.params) if value is None else value)
        case "fail":
            study.tell(trial, state=TrialState.FAIL)
        case "cap":
            trial.set_user_attr(BOUND, 3.0)
            study.tell(trial, state=TrialState.PRUNED)


@st.composite
def small_spaces(draw):
    """A random space with a random valid configuration as its default."""
    parameters, constraints, facts = draw(spaces_parts())
    try:
        space = Space(parameters, constraints, facts)
        assume(space.listable and space.size.value <= 300)
    except SpaceError:
        assume(False)
    rows = space.all_indices()
    default = space.decode(rows[[draw(st.integers(0, len(rows) - 1))]])[0]
    with_default = [replace(parameter, default=default.get(parameter.name)) for parameter in parameters]
    return Space(with_default, constraints, facts)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(space=small_spaces(), data=st.data())
def test_every_proposal_is_valid_and_new_and_the_default_is_the_first(chosen, space, data):
    study = studied(chosen, space)
    seen = set()
    for number in range(10):
        if len(seen) == space.size.value:
            with pytest.raises(SpaceExhaustedError):
                ask(study, space)
            break
        trial = ask(study, space)
        assert space.violations(trial.params) == []
        if number == 0:
            assert trial.params == space.default()
        assert key(trial.params) not in seen
        seen.add(key(trial.params))
        how = data.draw(st.sampled_from(["complete", "complete", "fail", "cap", "leave"]))
        # Any number may be a value: a sampler that takes logarithms must not stumble over one below zero.
        end(study, trial, how, data.draw(st.floats(-1e3, 1e3)) if how == "complete" else None)


@pytest.mark.parametrize("space", [TINY, FREE], ids=["tiny", "free"])
def test_every_configuration_is_proposed_and_then_no_more(chosen, space):
    study = studied(chosen, space)
    proposed = set()
    for number in range(space.size.value):
        trial = ask(study, space)
        proposed.add(key(trial.params))
        end(study, trial, "fail" if number % 3 == 1 else "complete")
    assert proposed == {key(configuration) for configuration in space.configurations()}
    with pytest.raises(SpaceExhaustedError):
        ask(study, space)


def test_a_space_too_large_to_list(chosen):
    if chosen.name == "exhaustive":
        pytest.skip("refuses it")
    study = studied(chosen, LARGE)
    for _ in range(9):
        trial = ask(study, LARGE)
        assert LARGE.violations(trial.params) == []
        end(study, trial, "complete")
    assert len({key(trial.params) for trial in study.trials}) == 9


def history(chosen, interrupted):
    """Return the proposals of a study in which trials overlap, fail, are capped and are measured again."""
    study = studied(chosen, MIXED)
    waiting = None
    for number in range(14):
        if number in interrupted:
            study.sampler = sampler_of(MIXED, chosen)
            # The value of the default changes when it is measured again.
        runs = number // 4 + 1
        if number > 1:
            study.sampler.learn({0: Observation(value=cost(MIXED.default()) + 0.01 * runs, runs=runs)})
        trial = ask(study, MIXED)
        if number == 6:
            waiting = trial
            continue
        end(study, trial, {4: "fail", 8: "cap"}.get(number, "complete"))
        if number == 9:
            end(study, waiting, "complete")
    return [trial.params for trial in study.trials]


def test_an_interruption_changes_no_proposal(chosen):
    whole = history(chosen, ())
    assert history(chosen, range(14)) == whole
    assert history(chosen, (3, 7, 12)) == whole


def test_another_seed_gives_other_proposals(chosen):
    if chosen.name == "exhaustive":
        pytest.skip("its order is fixed")
    other = chosen.model_copy(update={"seed": 6})
    assert history(chosen, ()) != history(other, ())


def test_trials_that_are_asked_for_at_once_differ(chosen):
    study = studied(chosen, MIXED)
    for _ in range(6):
        pair = [ask(study, MIXED), ask(study, MIXED)]
        assert pair[0].params != pair[1].params
        for trial in reversed(pair):
            end(study, trial, "complete")
    assert len({key(trial.params) for trial in study.trials}) == 12


def test_it_works_alone_with_several_threads(chosen):
    study = studied(chosen, MIXED)

    def objective(trial):
        suggest(trial, MIXED)
        return cost(trial.params)

    study.optimize(objective, n_trials=12, n_jobs=2)
    assert all(MIXED.contains(trial.params) for trial in study.trials)
    assert len({key(trial.params) for trial in study.trials}) == 12
    assert key(MIXED.default()) in {key(trial.params) for trial in study.trials}


def test_a_trial_without_parameters_does_not_disturb(chosen):
    """Another worker's trial is in storage before its parameters are, and stays so if that worker dies."""
    study = studied(chosen, MIXED)
    for number in range(9):
        if number in {0, 2, 6}:
            study._storage.create_new_trial(study._study_id)
        trial = ask(study, MIXED)
        if number == 0:
            assert trial.params == MIXED.default()
        assert MIXED.contains(trial.params)
        end(study, trial, "complete")
    assert len({key(trial.params) for trial in study.trials if trial.params}) == 9


def test_configurations_without_new_information_are_skipped(chosen):
    study = studied(chosen, MIXED)
    study.sampler.learn({}, lambda configuration: configuration.get("momentum") == 0.0)
    for _ in range(10):
        trial = ask(study, MIXED)
        assert trial.params.get("momentum") != 0.0
        end(study, trial, "complete")
    study.sampler.learn({}, lambda configuration: True)
    assert MIXED.contains(ask(study, MIXED).params)


def test_the_search_continues_if_every_trial_failed(chosen):
    study = studied(chosen, MIXED)
    for _ in range(8):
        end(study, ask(study, MIXED), "fail")
    assert MIXED.contains(ask(study, MIXED).params)


PREDICTED = [{**MIXED.default(), "batch": batch} for batch in (64, 128, 16, 8)]


def test_predictions_come_first_while_they_beat_the_default(chosen):
    study = studied(chosen, MIXED)
    study.sampler.start_with(PREDICTED)
    tried = []
    for value in (3.0, 4.0, 2.0, 5.0, 6.0, 7.0):
        trial = ask(study, MIXED)
        tried.append(trial.params)
        study.tell(trial, value)
    assert tried[:5] == [MIXED.default(), *PREDICTED]
    assert tried[5] not in tried[:5]


@pytest.mark.parametrize("how", ["worse", "fail"])
def test_predictions_that_disappoint_are_given_up(chosen, how):
    study = studied(chosen, MIXED)
    study.sampler.start_with(PREDICTED)
    tried = []
    for number in range(4):
        trial = ask(study, MIXED)
        tried.append(trial.params)
        if number and how == "fail":
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, 1.0 + number)
    assert tried[:3] == [MIXED.default(), *PREDICTED[:2]]
    assert tried[3] not in PREDICTED
