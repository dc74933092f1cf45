import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.study import StudyDirection

from autotune.errors import StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.report.headline import headline
from autotune.results.pareto import pareto_front, tradeoff_metrics
from autotune.results.summary import summarise
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.training_data import training_data_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.studyfile.space import join_space
from autotune.tuning.loop import TuningLoop
from objectives.base import Metric, Plan
from spaces import Integer, Space
from tests.support.fakes import SECONDS, PaperExecutor, PaperObjective, definition, study_file
from tests.support.managers import managed

LOSS = Metric("loss", "", "minimize")
AUC = Metric("auc", "", "maximize")
MEMORY, JOULES = Metric("memory", "B"), Metric("energy_j", "J")
SPACE = Space([Integer.range("np", 1, 40, default=40)], [])
STUDY = study_file(tradeoff={"metric": "loss"}, budget={"trials": 20})


def trial(number, first, second, *others):
    measured = dict(zip(("memory", "energy_j"), others, strict=False))
    outcome = Outcome(metrics={"wall_s": first, "loss": second, "auc": second} | measured)
    return TrialRecord(number, {"np": number + 1}, (Run({}, number, outcome=outcome),), settled=True)


values = st.integers(2, 4).flatmap(lambda width: st.lists(st.tuples(*[st.integers(1, 9)] * width), max_size=12))


@given(values)
def test_only_trials_off_the_front_are_beaten(rows):
    metrics = (SECONDS, LOSS, MEMORY, JOULES)[: len(rows[0]) if rows else 2]
    trials = [trial(number, row[0], row[1], *row[2:]) for number, row in enumerate(rows)]
    front = pareto_front(trials, metrics).points
    places = {point.values for point in front}
    for row in rows:
        beaten = any(all(a <= b for a, b in zip(other, row, strict=True)) and other != row for other in rows)
        assert (row in places) is not beaten
    assert len(places) == len(front)
    assert [point.values[0] for point in front] == sorted(point.values[0] for point in front)


def test_the_front_respects_the_directions_of_metrics():
    trials = [trial(0, 1.0, 0.5), trial(1, 2.0, 0.9), trial(2, 3.0, 0.6)]
    assert [point.trial for point in pareto_front(trials, (SECONDS, AUC)).points] == [0, 1]
    assert [point.trial for point in pareto_front(trials, (SECONDS, LOSS)).points] == [0]


def test_a_trial_without_one_of_the_metrics_is_not_on_the_front():
    trials = [trial(0, 2.0, 2.0, 2.0), trial(1, 1.0, 1.0)]
    assert [point.trial for point in pareto_front(trials, (SECONDS, LOSS, MEMORY)).points] == [0]


def test_a_study_of_a_trade_off_finds_both_ends_and_races_nobody(tmp_path):
    def model(configuration):
        return Outcome(metrics={"wall_s": 1.0 + configuration["np"], "loss": 1.0 + 40 / configuration["np"]})

    known = definition(SPACE, metrics=(SECONDS, LOSS), study=STUDY.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", known)
    asker = Asker(store, ValidSetSampler(SPACE, startup=4))
    executor = PaperExecutor(model)
    TuningLoop(asker, managed(executor, tmp_path / "runs"), STUDY).tune()
    assert len(executor.launched) == len({tuple(c.items()) for _, c in executor.launched}) == 20
    summary = summarise(store)
    # Every configuration is on this front.
    assert len(summary.front.points) == 20
    tried = {configuration["np"] for _, configuration in executor.launched}
    assert min(tried) <= 3
    assert max(tried) == 40
    assert "trade-off between wall_s and loss" in summary.best_text()
    assert summary.to_dict()["front"][0]["values"] == {"wall_s": 1.0 + min(tried), "loss": 1.0 + 40 / min(tried)}


def test_a_study_of_three_metrics_goes_to_all_three_ends(tmp_path):
    """The first two metrics are best at opposite ends; the third, a negative rate, is best in the middle."""

    def model(configuration):
        ranks = configuration["np"]
        return Outcome(metrics={"wall_s": 1.0 + ranks, "loss": 1.0 + 40 / ranks, "score": -((ranks - 21.0) ** 2)})

    study = study_file(tradeoff={"metric": ["loss", "score"]}, budget={"trials": 14})
    metrics = (SECONDS, LOSS, Metric("score", "", "maximize"))
    known = definition(SPACE, metrics=metrics, study=study.model_dump(mode="json"))
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", known)
    executor = PaperExecutor(model)
    TuningLoop(Asker(store, ValidSetSampler(SPACE, startup=4)), managed(executor, tmp_path / "runs"), study).tune()
    tried = {configuration["np"] for _, configuration in executor.launched}
    assert min(tried) <= 3
    assert max(tried) == 40
    assert len(tried & set(range(18, 25))) >= 3
    summary = summarise(store)
    assert "trade-off between wall_s, loss and score: no other trial is better in all 3" in summary.best_text()
    assert headline(summary).kind == "trade-off"


def test_a_stored_trade_off_of_one_name_is_read():
    known = definition(SPACE, metrics=(SECONDS, LOSS), study={"tradeoff": {"metric": "loss"}})
    assert tradeoff_metrics(known) == (SECONDS, LOSS)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"tradeoff": {"metric": "los"}}, "did you mean 'loss'"),
        ({"tradeoff": {"metric": ["loss", "wall_s"]}}, "the other metrics are loss, got 'wall_s'"),
        ({"tradeoff": {"metric": ["loss", "loss"]}}, "'loss' does 2 times"),
        ({"tradeoff": {"metric": "loss"}, "stopping": {"max_steps": 3}}, "excludes a trade-off"),
    ],
)
def test_what_does_not_go_together_is_said(sections, words):
    class Two(PaperObjective):
        metrics = (SECONDS, LOSS)

    plan = Plan(Two(), tuple(SPACE.parameters), (), {}, {}, works_in_steps=True)
    with pytest.raises(StudyFileError, match=words):
        join_space(study_file(**sections), plan, this_machine().facts)


def test_a_trial_without_all_values_is_not_a_candidate():
    rng = np.random.default_rng(0)
    observations = [Observation(value=float(v), others=(float(v), -float(v))) for v in (1.0, 2.0, 3.0)]
    lacking = [Observation(value=0.001), Observation(value=0.001, others=(None, 1.0))]
    found = training_data_of([*observations, *lacking], StudyDirection.MINIMIZE, rng)
    assert np.isposinf(found.values[3:]).all()
    assert np.isfinite(found.values[:3]).all()
