"""The prior mean from other settings: how it leads a search, and how little it costs where it is wrong."""

from itertools import count, islice
from statistics import median

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.study import StudyDirection
from optuna.trial import TrialState

from autotune.search.acquisition import fit_model, fit_prior_weights
from autotune.search.base import History
from autotune.search.expected_gain import expected_gain_of
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.prior_mean import NO_PRIOR, PriorWeights
from autotune.search.registry import sampler_of
from autotune.search.suggest import ask
from autotune.search.training_data import training_data_of
from autotune.storage.observation import Observation
from autotune.studyfile import SamplerSection
from spaces import Integer, Space

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE = Space([Integer.range(name, 0, 7, default=7) for name in "xyz"])
ROWS = SPACE.all_indices()
TRIALS = 60


def rugged(seed=0):
    """Return the log costs, (512,), in the order of `ROWS`, of a slope on which neighbours differ much."""
    rng = np.random.default_rng(seed)
    costs = 0.1 * np.abs(ROWS - rng.integers(0, 8, 3)).sum(1) + rng.gamma(2.0, 0.15, len(ROWS))
    return costs - costs.min()


def roughly(costs, seed, spread=0.1):
    """Return the true costs with some noise."""
    noisy = costs + spread * np.random.default_rng(seed).standard_normal(len(costs))
    return noisy - noisy.min()


def place_of(rows):
    return rows @ np.array([64, 8, 1])


class Said:
    """The predictions of other settings, each in the order of `ROWS`."""

    def __init__(self, *said):
        self.said = np.column_stack(said)

    def fields(self, rows):
        return self.said[place_of(rows)]

    def best(self, number):
        return SPACE.decode(ROWS[np.argsort(self.said.mean(1), kind="stable")[:number]])


def right(costs):
    return Said(roughly(costs, 1), roughly(costs, 2), rugged(3))


def wrong(costs):
    return Said(costs.max() - costs, rugged(4), rugged(5))


def cost_of(costs, configuration):
    return float(costs[place_of(SPACE.indices([configuration]))[0]])


def studied(prior, seed=0, predicted=0, direction="minimize"):
    sampler = ValidSetSampler(SPACE, seed=seed)
    sampler.set_prior_mean(prior)
    if predicted:
        sampler.start_with(prior.best(predicted))
    return optuna.create_study(sampler=sampler, direction=direction)


def tried(study, value_of):
    """Yield the proposals; a trial whose value is None fails."""
    while True:
        trial = ask(study, SPACE)
        value = value_of(trial.params)
        study.tell(trial, value, state=TrialState.FAIL if value is None else None)
        yield trial.params


def trials_to_the_best(costs, prior, predicted=0, seed=0, sign=1):
    """Return the number of trials until one is within 5 % of the optimum, at most one more than `TRIALS`."""
    study = studied(prior, seed, predicted, "minimize" if sign == 1 else "maximize")
    proposed = tried(study, lambda configuration: np.exp(sign * cost_of(costs, configuration)))
    reached = (number for number in count(1) if cost_of(costs, next(proposed)) <= 0.05 or number > TRIALS)
    return next(reached)


def median_trials(guide_of, predicted=0, **options):
    spaces = [rugged(seed) for seed in range(7)]
    return median(
        trials_to_the_best(costs, guide_of(costs), predicted, seed, **options) for seed, costs in enumerate(spaces)
    )


def first(trials, prior, value_of, **options):
    return list(islice(tried(studied(prior, **options), value_of), trials))


def history(values, places):
    return History(ROWS[places], [Observation(value=float(value)) for value in values], StudyDirection.MINIMIZE)


def some(number, seed=0):
    return np.random.default_rng(seed).permutation(len(ROWS))[:number]


@pytest.mark.slow
def test_a_guide_that_is_right_saves_most_of_the_trials():
    cold = median_trials(lambda costs: None)
    assert 10 <= cold <= TRIALS
    assert median_trials(right, predicted=3) <= cold / 4
    assert median_trials(right) <= cold / 2


@pytest.mark.full
@pytest.mark.parametrize("predicted", [0, 3])
def test_a_guide_that_is_wrong_costs_little(predicted):
    assert median_trials(wrong, predicted) <= 1.5 * median_trials(lambda costs: None)


def test_it_guides_where_greater_is_better_too():
    costs = rugged()
    smaller, greater = (trials_to_the_best(costs, right(costs), predicted=3, sign=sign) for sign in (1, -1))
    assert greater <= 10
    assert greater == smaller


def test_weights_are_those_of_the_formula():
    one = Said(np.arange(512.0))
    # A'A = 1/2; the prior weight is 1, and the values imply 2: 1 + 50 / (50 + 1 / 0.09).
    fitted = PriorWeights.fit(one, ROWS[:2], np.array([5.0, 7.0]))
    assert fitted.weights == pytest.approx([1.0 + 50.0 / (50.0 + 1.0 / 0.09)])
    assert fitted.of(ROWS[2:3]) == pytest.approx(2.0 * fitted.weights)
    # A single value gives no information, so the weights stay equal.
    assert PriorWeights.fit(Said(*rugged()[None].repeat(4, 0)), ROWS[:1], np.ones(1)).weights == pytest.approx(
        [0.25] * 4
    )


def test_a_wrong_source_loses_its_weight_to_a_right_one():
    costs, places = rugged(), some(20)
    prior = Said(roughly(costs, 1), costs.max() - costs, rugged(5))
    told, turned, other = PriorWeights.fit(prior, ROWS[places], costs[places]).weights
    assert told > 0.7
    assert turned == 0.0
    assert other < 0.2


@given(
    st.integers(1, 5).flatmap(
        lambda m: st.lists(
            st.tuples(
                st.floats(-20.0, 20.0), *[st.one_of(st.floats(0.0, 10.0), st.just(float("inf"))) for _ in range(m)]
            ),
            min_size=1,
            max_size=12,
        )
    )
)
@settings(max_examples=80, deadline=None)
def test_whatever_is_said_the_weights_are_finite_and_not_negative(drawn):
    table = np.array(drawn)
    said = np.zeros((512, table.shape[1] - 1))
    said[: len(table)] = table[:, 1:]
    prior_weights = PriorWeights.fit(Said(said), ROWS[: len(table)], table[:, 0])
    assert (prior_weights.weights >= 0.0).all()
    assert np.isfinite(prior_weights.of(ROWS)).all()
    assert prior_weights.of(ROWS).min() >= 0.0


@pytest.mark.parametrize("value", [lambda cost: cost - 0.5, lambda cost: 0.0], ids=["negative", "zero"])
def test_values_that_are_no_ratios_are_not_guided(value):
    costs = rugged()

    def value_of(configuration):
        return value(cost_of(costs, configuration))

    assert first(12, right(costs), value_of, predicted=2) != first(12, right(costs), value_of)
    assert first(12, right(costs), value_of) == first(12, None, value_of)


def test_trade_offs_are_not_guided():
    costs, places = rugged(), some(12)
    both = [Observation(value=float(np.exp(costs[k])), others=(1.0 + k % 7,)) for k in places]
    told = History(ROWS[places], both, StudyDirection.MINIMIZE)
    guided, cold = ValidSetSampler(SPACE), ValidSetSampler(SPACE)
    guided.set_prior_mean(right(costs))
    proposals = [one.rank(told, np.random.default_rng(1)) for one in (guided, cold)]
    assert np.array_equal(*proposals)


@pytest.mark.parametrize("name", ["random", "exhaustive", "tpe"])
def test_samplers_without_a_process_of_ours_ignore_it(name):
    costs, places = rugged(), some(12)
    told = history(np.exp(costs[places]), places)
    guided, cold = (sampler_of(SPACE, SamplerSection(name=name, seed=1)) for _ in range(2))
    guided.set_prior_mean(right(costs))
    guided.start_with(right(costs).best(2))
    proposals = [one.rank(told, np.random.default_rng(1)) for one in (guided, cold)]
    assert np.array_equal(*proposals)


def test_a_guide_that_says_nothing_changes_nothing():
    costs = rugged()

    def value_of(configuration):
        return None if configuration["x"] == 7 else np.exp(cost_of(costs, configuration))

    cold = first(20, None, value_of)
    assert first(20, Said(np.zeros(512)), value_of) == cold
    assert first(20, NO_PRIOR, value_of) == cold
    assert first(20, right(costs), value_of) != cold


def test_a_study_that_goes_on_with_a_new_sampler_proposes_the_same():
    costs = rugged()

    def value_of(configuration):
        return np.exp(cost_of(costs, configuration))

    whole = first(14, right(costs), value_of, predicted=3)
    study = studied(right(costs), predicted=3)
    begun = list(islice(tried(study, value_of), 6))
    study.sampler = studied(right(costs), predicted=3).sampler
    assert begun + list(islice(tried(study, value_of), 8)) == whole


def test_predictions_and_a_guide_make_up_for_the_design_and_a_guide_alone_does_not():
    costs = rugged()
    order = np.argsort(costs)
    prior = Said(costs)
    prior.best = lambda number: SPACE.decode(ROWS[order[1 : number + 1]])

    def value_of(configuration):
        return np.exp(cost_of(costs, configuration))

    assert first(4, prior, value_of, predicted=2)[3] == SPACE.decode(ROWS[order[:1]])[0]
    assert first(7, prior, value_of) == first(7, None, value_of)
    assert first(8, prior, value_of)[7] == SPACE.decode(ROWS[order[:1]])[0]


def test_predictions_that_all_fail_leave_the_design():
    costs = rugged()
    proposed = first(6, right(costs), lambda configuration: None, predicted=2)
    assert len({tuple(one.values()) for one in proposed}) == 6


def test_a_failure_that_was_foretold_does_not_make_its_neighbours_look_good():
    said = rugged()
    failed = place_of(np.array([3, 3, 3]))
    said[failed] = np.inf
    places = np.append(np.setdiff1d(some(15), failed), failed)
    observations = [Observation(value=float(np.exp(1.0 + said[k]))) for k in places[:-1]]
    evidence = training_data_of([*observations, Observation()], StudyDirection.MINIMIZE, np.random.default_rng(0))
    model = fit_model(SPACE, ROWS[places], evidence, Said(said))
    near = ROWS[[failed - 1, failed + 1, failed - 8, failed + 8]]
    left, _ = model.surrogate.predict(SPACE.traits_of(near))
    assert (left >= 1.0 - 0.05).all()


def test_a_bound_is_a_bound_whatever_the_guide_says():
    costs, places = rugged(), some(20)
    observations = [Observation(value=float(np.exp(costs[k]))) for k in places[:-1]]
    bound = float(costs[places[-1]]) + 2.0
    told = [*observations, Observation(bound=float(np.exp(bound)))]
    evidence = training_data_of(told, StudyDirection.MINIMIZE, np.random.default_rng(0))
    model = fit_model(SPACE, ROWS[places], evidence, Said(costs + 0.7))
    capped = ROWS[places[-1:]]
    mean = model.prior_weights.of(capped) + model.surrogate.predict(SPACE.traits_of(capped))[0]
    assert mean[0] >= bound - 0.3
    assert model.best == pytest.approx(costs[places[:-1]].min(), abs=0.1)


def test_running_trials_are_believed_at_what_the_guide_makes_of_them():
    costs, places = rugged(), some(20)
    told = history(np.exp(costs[places]), places)
    running = np.argmin(costs)
    with_running = History(
        np.vstack([told.rows, ROWS[running]]), [*told.observations, Observation(pending=True)], told.direction
    )
    sampler = ValidSetSampler(SPACE)
    sampler.set_prior_mean(Said(costs))
    alone, beside = (sampler.rank(one, np.random.default_rng(0))[0] for one in (told, with_running))
    assert place_of(alone) == running
    assert place_of(beside) == np.argsort(costs)[1]


@pytest.mark.slow
def test_what_the_next_trials_gain_is_seen_with_the_guide_s_eyes():
    """With a prior mean that is known to be right, the remaining gain is known too."""
    costs = rugged()
    places = np.argsort(costs)[5:200:5]
    told = history(np.exp(costs[places]), places)
    sampler = ValidSetSampler(SPACE)
    startup_trials = expected_gain_of(sampler, told)
    # The best of the other setting does not exist here, so only differences count.
    sampler.set_prior_mean(Said(costs + 0.7))
    assert expected_gain_of(sampler, told).gain == pytest.approx(np.expm1(costs[places].min()), rel=0.1)
    assert startup_trials.gain != pytest.approx(np.expm1(costs[places].min()), rel=0.1)


def test_a_guide_that_leads_is_followed_from_the_first_trial():
    costs = rugged()
    sampler = ValidSetSampler(SPACE)
    sampler.set_prior_mean(Said(costs), leads=True)
    study = optuna.create_study(sampler=sampler)
    proposed = list(islice(tried(study, lambda configuration: np.exp(cost_of(costs, configuration))), 4))
    assert min(cost_of(costs, configuration) for configuration in proposed) <= np.sort(costs)[3]


def test_capped_trials_take_the_say_from_a_guide_that_misleads():
    """The predicted best configurations are stopped as too slow, so only the default has a value."""
    costs = rugged()
    order = np.argsort(costs)
    places = np.append(order[5], order[-3:])
    told = [
        Observation(value=float(np.exp(costs[places[0]]))),
        *[Observation(bound=float(np.exp(costs[places[0]]) * 1.2))] * 3,
    ]
    evidence = training_data_of(told, StudyDirection.MINIMIZE, np.random.default_rng(0))
    wrong = Said(costs.max() - costs)
    assert fit_prior_weights(evidence, wrong, ROWS[places]).total_weight < 0.1
    assert fit_prior_weights(evidence, Said(costs), ROWS[places]).total_weight == pytest.approx(1.0, abs=0.1)


def test_a_misleading_guide_that_leads_gives_way_to_the_design():
    costs = rugged()
    best = np.sort(costs)[0]
    default = cost_of(costs, SPACE.default())

    def value_of(configuration):
        return np.exp(cost_of(costs, configuration))

    sampler = ValidSetSampler(SPACE)
    sampler.set_prior_mean(Said(costs.max() - costs), leads=True)
    proposed = list(islice(tried(optuna.create_study(sampler=sampler), value_of), 30))
    assert min(cost_of(costs, configuration) for configuration in proposed) < best + 0.3 * (default - best) + 0.2


def test_small_runs_come_first_where_a_guide_leads_and_runs_hold_different_cores():
    """Of configurations that are expected to be equally good, those on fewer cores are tried."""
    cores = Integer.range("cores", 1, 64, default=64)
    space = Space([cores, Integer.range("way", 0, 15, default=0)])

    class Flat:
        def fields(self, rows):
            return 0.1 * np.abs(rows[:, 1:2] - 9.0)

    def second(scored):
        sampler = ValidSetSampler(space)
        sampler.set_prior_mean(Flat(), leads=True)
        sampler.set_held_cores(scored)
        told = History(space.indices([space.default()]), [Observation(value=2.0)], StudyDirection.MINIMIZE)
        return sampler.propose(told)["cores"]

    scored = HeldCores.infer(space, lambda configuration: configuration["cores"])
    assert second(scored) <= 4
    assert second(None) > 4
