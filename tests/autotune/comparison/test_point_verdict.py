import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.comparison.point_verdict import MetricPairs
from autotune.errors import AutotuneError
from autotune.records.outcome import Outcome
from autotune.report.headline import headline
from autotune.report.results import findings
from autotune.results.summary import summarise
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.tuning.goal import goal_of
from launchers import Usage
from objectives.base import FailureKind, Metric
from spaces import Integer, Space
from tests.support.command_line import invoke
from tests.support.contests import manager
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, failed, study_file
from tests.support.stored import add_trial

SPACE = Space([Integer.range("np", 1, 8, default=8)], [])
MEMORY, MARGIN = Metric("memory", "B"), Metric("margin", "", "maximize")
NOTHING_ELSE = SimpleNamespace(verified=())


def study_with(weights, **sections):
    tradeoff = {"metric": ["memory", "margin"], "weights": weights}
    return study_file(
        verdict={"pairs": 6, "max_pairs": 12, "precision": 0.02, "of_gain": 0.0}, tradeoff=tradeoff, **sections
    )


def ran(ranks, noise=(1.0, 1.0)):
    """More ranks are slower and need less memory; the margin is below zero for most."""
    values = {"wall_s": ranks * noise[0], "memory": noise[1] * 100.0 / ranks, "margin": 3.0 - ranks}
    return Outcome(metrics=values, usage=Usage(elapsed_s=1.0))


def model(spread=0.05):
    rng = np.random.default_rng(0)
    return lambda configuration: ran(configuration["np"], np.exp(rng.normal(0.0, [0.005, spread])))


def store_of(folder, study, *ranks):
    known = definition(SPACE, metrics=(SECONDS, MEMORY, MARGIN), study=study.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", "paper", known)
    for one in ranks:
        add_trial(store, SPACE, {"np": one}, ran(one), worth=Observation(value=float(one)))
    return store


def test_the_point_that_weights_choose_is_compared_in_each_metric(tmp_path):
    study = study_with({"wall_s": 3, "memory": 1})
    store, executor = store_of(tmp_path, study, 8, 4, 2), PaperExecutor(model())
    assert not goal_of(study, NOTHING_ELSE).is_confirmed(store, summarise(store))
    goal_of(study, NOTHING_ELSE).confirm(store, manager(tmp_path, executor))
    summary = summarise(store)
    assert goal_of(study, NOTHING_ELSE).is_confirmed(store, summary)
    # The time alone would need six pairs; the memory is noisier.
    assert summary.point_verdict.pairs == len(summary.fresh_pairs) == 12
    assert summary.speed_up.confirmed
    sentence = summary.verdict_sentence()
    assert sentence.startswith(
        "For the weights wall_s 0.75, memory 0.25, margin 0, trial 2 is better than the default "
    )
    assert "in wall_s and margin, worse in memory: wall_s " in sentence
    assert "times lower (" in sentence
    assert "times higher (" in sentence
    assert "margin higher by 6 (6 to 6)" in sentence
    assert sentence.endswith("(95% intervals, 12 interleaved pairs of runs)")
    told = summary.to_dict()["point"]
    assert told["trial"] == 2
    metrics = told["confirmed"][0]["metrics"]
    assert [metrics[name]["kind"] for name in metrics] == ["ratio", "ratio", "difference"]
    assert [metrics[name]["better"] for name in metrics] == [True, False, True]
    assert metrics["memory"]["high"] < 1.0
    assert sentence in summary.best_text()
    assert "trial 0: 8 s" in summary.text()
    assert sentence in headline(summary).sentence
    texts = [getattr(part, "text", "") for section in findings(summary) for part in section.parts]
    assert any(text.startswith("In fresh runs, trial 2 is better") for text in texts)
    again = PaperExecutor(model())
    goal_of(study, NOTHING_ELSE).confirm(store, manager(tmp_path, again))
    assert again.launched == []


def test_without_weights_no_point_is_confirmed(tmp_path):
    study = study_with({})
    store, executor = store_of(tmp_path, study, 8, 4), PaperExecutor(model())
    goal_of(study, NOTHING_ELSE).confirm(store, manager(tmp_path, executor))
    summary = summarise(store)
    assert executor.launched == []
    assert goal_of(study, NOTHING_ELSE).is_confirmed(store, summary)
    assert "verdict: none, since no weights say which point matters; `autotune confirm paper --weights" in (
        summary.best_text()
    )
    assert summary.verdict_sentence() is None
    assert summary.to_dict()["point"]["trial"] is None
    refused = invoke("confirm", "paper", "--storage", store.url)
    assert isinstance(refused.exception, AutotuneError)
    assert "--weights say which point" in str(refused.exception)


def test_confirmed_points_are_shown_without_weights(tmp_path):
    store = store_of(tmp_path, study_with({"wall_s": 1}), 8, 4)
    goal_of(study_with({"wall_s": 1}), NOTHING_ELSE).confirm(store, manager(tmp_path, PaperExecutor(model())))
    study = study_with({}).model_dump(mode="json")
    StudyStore.create(store.url, "paper", replace(store.definition, study=study))
    best = invoke("best", "paper", "--storage", store.url)
    assert "confirmed: trial 1 is better than the default in wall_s" in best.stdout.replace("\n", " ")
    weighted = invoke("best", "paper", "--json", "--weights", "wall_s=1", "--storage", store.url)
    assert json.loads(weighted.stdout)["point"]["sentence"].startswith("For the weights wall_s 1")


def test_a_point_that_breaks_a_limit_in_fresh_runs_gives_way_to_another(tmp_path):
    study = study_with({"wall_s": 1}, limits={"memory": {"max": 40}})

    def runs(configuration):
        return ran(configuration["np"], (1.0, 2.0 if configuration["np"] == 4 else 1.0))

    store, display = store_of(tmp_path, study, 8, 5, 4), ListDisplay()
    goal_of(study, NOTHING_ELSE).confirm(store, manager(tmp_path, PaperExecutor(runs), display))
    summary = summarise(store)
    assert any("trial 2 breaks memory <= 40 B: 50 B in fresh runs" in line for line in display.lines)
    assert summary.preference.point.trial == 1
    assert summary.verdict_sentence().endswith("; trial 1 kept memory <= 40 B in 6 of 6 pairs")


@pytest.mark.parametrize(
    ("ranks", "words"),
    [((1, 8), "For the weights wall_s 1, memory 0, margin 0 the default is the point"), ((8, 1), "could not be")],
)
def test_the_reason_is_given_if_a_point_cannot_be_compared(tmp_path, ranks, words):
    study = study_with({"wall_s": 1})
    store = store_of(tmp_path, study, *ranks)
    goal_of(study, NOTHING_ELSE).confirm(
        store, manager(tmp_path, PaperExecutor(lambda _: failed(FailureKind.TIMED_OUT)))
    )
    summary = summarise(store)
    assert words in summary.verdict_sentence()
    assert goal_of(study, NOTHING_ELSE).is_confirmed(store, summary)


def test_differences_name_the_direction_of_the_change():
    worse = MetricPairs(MARGIN, tuple((1.0, -1.0 - i / 100) for i in range(6)))
    assert worse.words(0.95).startswith("margin lower by 2.02")
    assert worse.direction(0.95) == -1
    same = MetricPairs(MEMORY, ((5.0, 5.0),) * 6)
    assert same.words(0.95) == "memory the same in every pair"
    noise = MetricPairs(MEMORY, ((5.0, 5.1), (5.0, 4.9)) * 6)
    assert "no significant difference" in noise.words(0.95)
