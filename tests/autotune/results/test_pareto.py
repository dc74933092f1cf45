import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.study import StudyDirection

from autotune.errors import StudyFileError
from autotune.machines.this_machine import this_machine
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.results.pareto import pareto_front
from autotune.results.summary import summarise
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.training_data import evidence_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.studyfile.space import joined
from autotune.tuning.loop import TuningLoop
from objectives.base import Metric, Plan
from spaces import Integer, Space
from tests.support.fakes import SECONDS, PaperExecutor, PaperObjective, definition, study_file
from tests.support.managers import managed

LOSS = Metric("loss", "", "minimize")
AUC = Metric("auc", "", "maximize")
SPACE = Space([Integer.range("np", 1, 40, default=40)], [])
STUDY = study_file(tradeoff={"metric": "loss"}, budget={"trials": 20})


def trial(number, first, second):
    outcome = Outcome(metrics={"wall_s": first, "loss": second, "auc": second})
    return TrialRecord(number, {"np": number + 1}, (Run({}, number, outcome=outcome),), settled=True)


values = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=12)


@given(values)
def test_nobody_on_the_front_is_beaten_and_everybody_else_is(pairs):
    trials = [trial(number, *pair) for number, pair in enumerate(pairs)]
    found = pareto_front(trials, SECONDS, LOSS)
    places = {(place.first, place.second) for place in found}
    for first, second in pairs:
        beaten = any(a <= first and b <= second and (a, b) != (first, second) for a, b in pairs)
        assert ((first, second) in places) is not beaten
    assert len(places) == len(found)
    assert [place.first for place in found] == sorted(place.first for place in found)


def test_directions_are_minded():
    trials = [trial(0, 1.0, 0.5), trial(1, 2.0, 0.9), trial(2, 3.0, 0.6)]
    assert [place.trial for place in pareto_front(trials, SECONDS, AUC)] == [0, 1]
    assert [place.trial for place in pareto_front(trials, SECONDS, LOSS)] == [0]


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
    assert len(summary.front) == 20
    tried = {configuration["np"] for _, configuration in executor.launched}
    assert min(tried) <= 3
    assert max(tried) == 40
    assert "trade-off between wall_s and loss" in summary.best_text()
    assert summary.to_dict()["front"][0]["first"] == 1.0 + min(tried)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"tradeoff": {"metric": "los"}}, "did you mean 'loss'"),
        ({"tradeoff": {"metric": "loss"}, "stopping": {"max_steps": 3}}, "no place in a trade-off"),
    ],
)
def test_what_does_not_go_together_is_said(sections, words):
    class Two(PaperObjective):
        metrics = (SECONDS, LOSS)

    plan = Plan(Two(), tuple(SPACE.parameters), (), {}, {}, works_in_steps=True)
    with pytest.raises(StudyFileError, match=words):
        joined(study_file(**sections), plan, this_machine().facts)


def test_who_has_only_one_of_two_values_is_no_candidate():
    rng = np.random.default_rng(0)
    observations = [Observation(value=float(v), second=float(v)) for v in (1.0, 2.0, 3.0)]
    found = evidence_of([*observations, Observation(value=0.001)], StudyDirection.MINIMIZE, rng)
    assert np.isposinf(found.values[3])
    assert np.isfinite(found.values[:3]).all()
