"""Importance: planted effects are found, even if trials lack a value or a parameter."""

import json
from math import exp

import numpy as np
import pytest

from autotune.pictures.chart import Bars
from autotune.pictures.importance import importance
from autotune.records.outcome import Outcome
from autotune.results.importance import Importance, ParameterShare, importance_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind, Metric
from spaces import Choice, Constraint, Flag, Float, Integer, Space
from tests.autotune.pictures.studies import summary, trial
from tests.support.command_line import invoke
from tests.support.fakes import capped, definition, failed, took
from tests.support.stored import add_trial

SPACE = Space(
    [
        Integer.range("np", 1, 8, default=8),
        Choice("blas", ("slow", "fast", "fastest"), default="slow"),
        Integer("block", (1, 2, 4, 8), default=1),
        Integer("idle", (1, 2, 3, 4), default=1),
    ]
)
BLAS = {"slow": 0.6, "fast": 0.1, "fastest": 0.0}


def added(of):
    """Return a logarithm to which each parameter adds, `idle` nothing."""
    return 0.05 * of["np"] + BLAS[of["blas"]] + 0.001 * of["block"]


def study(logarithm, count, *more, space=SPACE, made=took, **options):
    """Return a study of `count` valid configurations with these logarithms of seconds."""
    rng = np.random.default_rng(3)
    trials = [
        trial(number, made(exp(logarithm(of) + 0.01 * rng.standard_normal())), **of)
        for number, of in enumerate(space.sample(rng, count))
    ]
    return summary(*trials, *more, space=space, **options)


def shares(about):
    return {one.name: one.share for one in importance_of(about).parameters}


@pytest.mark.slow
def test_the_parameters_that_matter_come_first_and_shares_add_up_to_one():
    found = importance_of(study(added, 80))
    names = [one.name for one in found.parameters]
    assert names[:2] == ["blas", "np"]
    assert set(names) == {"np", "blas", "block", "idle"}
    assert sum(one.share for one in found.parameters) == pytest.approx(1.0, abs=0.001)
    assert found.parameters[0].share > 0.5
    assert found.sentences()[0].startswith("most of the differences in wall_s are explained by blas ")
    assert not any("are few" in sentence for sentence in found.sentences())
    assert importance_of(study(added, 80)) == found


def test_nothing_explains_most_if_the_first_parameters_explain_less_than_half():
    equal = tuple(ParameterShare(f"p{place}", 0.125) for place in range(8))
    assert not any("most of the differences" in one for one in Importance("s", "wall_s", 99, equal).sentences())


def test_few_trials_are_called_few_and_fewer_have_no_importance():
    assert "12 trials are few for 4 parameters" in importance_of(study(added, 12)).sentences()[1]
    assert importance_of(study(added, 4)) is None
    assert importance(study(added, 4)) is None


def test_a_search_that_soon_tries_only_the_best_value_does_not_hide_what_matters():
    tried = ({"np": 1 + k % 8, "blas": "fastest", "block": 1, "idle": 1 + k % 4} for k in range(40))
    good = [trial(100 + number, took(exp(added(of))), **of) for number, of in enumerate(tried)]
    assert next(iter(shares(study(added, 12, *good)))) == "blas"


def test_capped_trials_count_and_failed_ones_do_not():
    lost = [trial(100 + k, capped(1.6), np=1 + k % 8, blas="slow", block=1, idle=1 + k % 4) for k in range(40)]
    broken = [
        trial(200 + k, failed(FailureKind.OUT_OF_MEMORY), np=1, blas="fast", block=1, idle=1 + k) for k in range(3)
    ]
    found = importance_of(study(added, 40, *lost, *broken))
    assert found.trials == 80
    assert found.parameters[0].name == "blas"


def test_the_greatest_rate_is_the_best():
    metric = Metric("rate", "B/s", "maximize", "rate")
    rates = study(lambda of: -added(of), 80, metric=metric, made=lambda rate: Outcome(metrics={"rate": rate}))
    assert next(iter(shares(rates))) == "blas"


def test_conditional_and_optional_parameters_are_counted_where_they_exist():
    space = Space(
        [
            Choice("kind", ("adam", "sgd"), default="adam"),
            Float("momentum", 0.0, 0.9, points=4, when="kind == 'sgd'"),
            Flag("amp", optional=True),
            Integer("idle", (1, 2, 3, 4, 5, 6), default=1),
            Integer("alone", (7,), default=7),
        ],
        [Constraint("slow", "kind == 'adam' or idle > 1", "reason")],
    )
    of_amp = shares(study(lambda of: 0.0 if "amp" in of else 1.0, 60, space=space))
    assert next(iter(of_amp)) == "amp"
    assert of_amp["amp"] > 0.5
    assert "alone" not in of_amp
    of_momentum = shares(study(lambda of: 1.0 + of.get("momentum", 1.0), 60, space=space))
    assert next(iter(of_momentum)) == "momentum"


def test_without_trials_that_compete_there_is_no_importance():
    table = study(added, 20, study={"decisions": {"over": ["np"]}})
    assert table.has_decision_table
    assert importance_of(table) is None
    same = [trial(number, took(2.0), np=2, blas="slow", block=1, idle=1) for number in range(12)]
    assert importance_of(summary(*same, space=SPACE)) is None


def test_the_picture_and_the_command_show_the_shares(sqlite, tmp_path):
    about = study(added, 40)
    chart = importance(about)
    (bars,) = [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Bars)]
    assert chart.table.rows[0] == ("blas", bars.values[0])
    assert "has no interval" in chart.description
    store = StudyStore.create(sqlite, "mine", definition(SPACE))
    for made in about.trials:
        seconds = exp(added(made.configuration))
        add_trial(store, SPACE, made.configuration, took(seconds), worth=Observation(value=seconds))
    StudyStore.create(sqlite, "empty", definition(SPACE))
    stored = ("--storage", str(tmp_path / "autotune.db"))
    printed = json.loads(invoke("importance", "mine", *stored, "--json").stdout)
    assert (printed["study"], printed["metric"], printed["trials"]) == ("mine", "wall_s", 40)
    assert printed["parameters"][0]["name"] == "blas"
    assert "blas" in invoke("importance", "mine", *stored).stdout
    ended = invoke("importance", "empty", *stored)
    assert "has no importance of parameters: it takes 5 trials with a value" in str(ended.exception)
