"""What matters in a study: planted effects are found, and what few trials cannot tell is not said."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from autotune.records.outcome import Outcome
from autotune.results.effects.importance import importance_of
from autotune.results.effects.process import study_process
from objectives.base import FailureKind, Metric
from spaces import Choice, Constraint, Integer, Space
from tests.autotune.pictures.studies import summary, trial
from tests.support.fakes import capped, failed, took

SPACE = Space(
    [
        Integer.range("np", 1, 8, default=8),
        Choice("blas", ("slow", "fast", "fastest"), default="slow"),
        Integer("block", (1, 2, 4, 8), default=1),
        Integer("idle", (1, 2, 3, 4), default=1),
    ]
)
BLAS = {"slow": 0.6, "fast": 0.1, "fastest": 0.0}
RATE = Metric("rate", "B/s", "maximize", "rate")


def added(of):
    """Return a logarithm to which each parameter adds, `idle` nothing."""
    return 0.1 * of["np"] + BLAS[of["blas"]] + 0.02 * of["block"]


def study(logarithm, count, *more, space=SPACE, noise=0.01, metric=None, made=took, **changes):
    """Return a study of `count` valid configurations with these logarithms of seconds."""
    rng = np.random.default_rng(3)
    trials = [
        trial(number, made(exp(logarithm(of) + noise * rng.standard_normal())), **of)
        for number, of in enumerate(space.sample(rng, count))
    ]
    options = {} if metric is None else {"metric": metric}
    return summary(*trials, *more, space=space, **options, **changes)


def found(about):
    return importance_of(about, study_process(about))


def true_shares(logarithm):
    """Return the shares of a sum over the whole space."""
    every = list(SPACE.configurations())
    whole = np.array([logarithm(of) for of in every])
    shares = {}
    for name in ("np", "blas", "block", "idle"):
        values = sorted({of[name] for of in every})
        means = [whole[[of[name] == value for of in every]].mean() for value in values]
        shares[name] = np.var(means) / whole.var()
    return shares


def test_a_sum_gives_its_shares_within_their_intervals():
    about = found(study(added, 80))
    shares = {share.name: share for share in about.parameters}
    for name, true in true_shares(added).items():
        assert shares[name].share == pytest.approx(true, abs=0.06), name
        assert shares[name].low - 0.02 <= true <= shares[name].high + 0.02, name
    assert shares["blas"].low > 0.3
    assert shares["idle"].low == 0.0
    assert all(share.share < 0.05 for share in about.pairs)
    assert about.sentences()[0].startswith("blas alone explains ")
    assert "idle" in next(one for one in about.sentences() if one.startswith("may do nothing alone"))


def test_an_interaction_is_seen_in_its_pair():
    def crossed(of):
        return 0.5 * (1.0 if (of["np"] > 4) == (of["blas"] == "slow") else -1.0)

    about = found(study(crossed, 90))
    assert about.pairs[0].names == ("np", "blas")
    assert about.pairs[0].low > 0.3
    assert about.leading == ("np", "blas")
    assert any(sentence.startswith("beyond that, np and blas explain ") for sentence in about.sentences())


def test_shares_and_the_rest_add_up_to_one_and_the_same_trials_give_the_same():
    about = found(study(added, 30))
    figures = (*about.parameters, *about.pairs, about.rest)
    assert sum(share.share for share in figures) == pytest.approx(1.0, abs=0.005)
    assert all(0.0 <= share.low <= share.share <= share.high <= 1.0 for share in figures)
    assert found(study(added, 30)) == about
    assert len(about.pairs) == 6


def test_few_trials_give_wide_intervals_and_a_sentence_that_says_so():
    few, many = found(study(added, 6)), found(study(added, 80))
    widths = [
        {share.name: share.high - share.low for share in about.parameters}[name]
        for about in (few, many)
        for name in ("np", "blas")
    ]
    assert min(widths[:2]) > 0.3
    assert max(widths[2:]) < 0.25
    assert "6 trials with a value are few for 4 parameters" in few.sentences()[-1]
    assert not any("are few for" in sentence for sentence in many.sentences())


def test_invalid_configurations_do_not_count():
    # With few ranks all blocks are valid, with more only the smallest: the block has less to do with it.
    space = Space(SPACE.parameters, [Constraint("small", "np <= 2 or block == 1", "memory")])

    def wild(of):
        # What cannot run would be a thousand times as slow.
        return added(of) + (7.0 if of["np"] > 2 and of["block"] > 1 else 0.0)

    about = found(study(wild, 60, space=space))
    shares = {share.name: share.share for share in about.parameters}
    assert shares["blas"] > 0.3
    assert shares["block"] < 0.2


def test_bounds_count_as_bounds_and_failures_do_not_count():
    more = [trial(100 + k, capped(5.0), np=8, blas="slow", block=1 + 0 * k, idle=1 + k) for k in range(3)]
    more += [
        trial(200 + k, failed(FailureKind.OUT_OF_MEMORY), np=1, blas="fast", block=1, idle=1 + k) for k in range(3)
    ]
    known = study_process(study(added, 40, *more))
    assert (known.valued, known.capped, len(known.process.y)) == (40, 3, 43)


@pytest.mark.full
def test_a_rate_has_the_shares_of_the_time_that_it_is_the_inverse_of():
    times = found(study(added, 60))
    rates = found(
        study(lambda of: -added(of), 60, metric=RATE, noise=-0.01, made=lambda rate: Outcome(metrics={"rate": rate}))
    )
    for one, other in zip(times.parameters, rates.parameters, strict=True):
        assert (one.name, one.share) == (other.name, pytest.approx(other.share, abs=0.02))


def test_what_is_predicted_of_a_configuration_is_in_its_unit_with_an_interval():
    for about in (
        study(added, 60),
        study(lambda of: -added(of), 60, metric=RATE, made=lambda v: Outcome(metrics={"rate": v})),
    ):
        known = study_process(about)
        rows = SPACE.all_indices()[::7]
        middle, low, high = known.predicted(rows).T
        sign = about.standings.metric.cost(1.0)
        true = np.exp([sign * added(of) for of in SPACE.decode(rows)])
        assert (low < middle).all()
        assert (middle < high).all()
        assert np.mean((low <= true) & (true <= high)) > 0.8


def test_without_trials_that_compete_there_is_no_model():
    assert study_process(study(added, 4)) is None
    table = study(added, 20)
    definition = replace(table.definition, study={**table.definition.study, "decisions": {"over": ["np"]}})
    assert study_process(replace(table, definition=definition)) is None
    alone = Space([Integer("np", (1, 2, 4), default=1), Integer("other", (7,), default=7)])
    trials = [trial(k, took(2.0), np=2, other=7) for k in range(6)]
    shares = found(summary(*trials, space=alone))
    assert [share.name for share in shares.parameters] == ["np"]
    assert (shares.pairs, shares.leading) == ((), ("np", ""))
