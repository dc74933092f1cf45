from dataclasses import replace
from pathlib import Path

import pytest

from autotune.batch.winner_script import run_to_use
from autotune.comparison.confirm import confirm
from autotune.comparison.findings import stored_input_comparisons
from autotune.comparison.verified_inputs import verify_on_inputs
from autotune.records.outcome import Outcome
from autotune.records.series import SeriesKind
from autotune.records.verified_input import VerifiedInput
from autotune.report.results import findings
from autotune.results.summary import summarise
from autotune.storage.study_store import StudyStore
from objectives.base import Answer, FailureKind, Plan
from spaces import Integer, Space
from tests.support.contests import DEFAULT, SIMPLE, SPACE, STUDY, add, manager, new_store, noisy, timed
from tests.support.fakes import SECONDS, PaperExecutor, PaperObjective, definition, failed, took


@pytest.fixture
def store(tmp_path):
    found = new_store(tmp_path)
    add(found, (DEFAULT, 2.0), (SIMPLE, 0.8))
    confirm(found, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    return found


def large(space=SPACE, **identity):
    return VerifiedInput("large", Plan(PaperObjective(), (), (), {"rows": 7}, {"input": "large", **identity}), space)


def other_way_round(configuration):
    return took(1.0 / timed(configuration))


def test_a_winner_that_loses_there_is_said_to(store, tmp_path):
    executor = PaperExecutor(other_way_round)
    verify_on_inputs(store, manager(tmp_path, executor), STUDY, [large()])
    (found,) = summarise(store).verified
    assert found.verdict.slower(SECONDS)
    assert dict(found.facts) == {"rows": 7}
    assert "on input large, of weight 0: Slower than the default" in summarise(store).best_text()
    assert summarise(store).to_dict()["inputs"]["large"]["high"] < 1
    (section,) = (one for one in findings(summarise(store)) if one.key == "inputs")
    assert section.parts[0].table.rows == (("large", found.sentence(SECONDS)),)
    # The default ran first, so its answer is the reference on this input.
    assert executor.launched[0][1] == DEFAULT


def test_what_was_interrupted_goes_on_and_what_is_done_is_not_repeated(store, tmp_path):
    first = PaperExecutor(noisy(), at_most=5)
    with pytest.raises(KeyboardInterrupt):
        verify_on_inputs(store, manager(tmp_path, first), STUDY, [large()])
    second = PaperExecutor(noisy())
    verify_on_inputs(store, manager(tmp_path, second), STUDY, [large()])
    third = PaperExecutor(noisy())
    verify_on_inputs(store, manager(tmp_path, third), STUDY, [large()])
    assert third.launched == []
    assert len(first.launched) + len(second.launched) == 2 * len(stored_input_comparisons(store)[0].verdict.pairs)


def test_a_verdict_there_has_the_confidence_of_the_newest_session(store, tmp_path):
    verify_on_inputs(store, manager(tmp_path, PaperExecutor(noisy())), STUDY, [large()])
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    continued = StudyStore.create(url, "paper", definition(SPACE, study={"verdict": {"confidence": 0.75}}))
    (found,) = stored_input_comparisons(continued)
    assert "75% interval" in found.sentence(SECONDS)


def test_another_input_of_the_same_name_is_measured_anew(store, tmp_path):
    verify_on_inputs(store, manager(tmp_path, PaperExecutor(noisy())), STUDY, [large()])
    executor = PaperExecutor(noisy())
    verify_on_inputs(store, manager(tmp_path, executor), STUDY, [large(program="newer")])
    assert executor.launched


def test_a_configuration_that_is_not_valid_there_is_not_run(store, tmp_path):
    executor = PaperExecutor(noisy())
    small = Space([Integer.range("np", 1, 4, default=4)], [])
    verify_on_inputs(store, manager(tmp_path, executor), STUDY, [large(space=small)])
    assert executor.launched == []
    assert "cannot be compared: the default is not valid there" in summarise(store).best_text()


@pytest.mark.parametrize(("name", "runs"), [("np", True), ("malloc", False)])
def test_parameters_that_the_input_does_not_have_are_not_set_there(store, tmp_path, name, runs):
    executor = PaperExecutor(lambda _: took(1.0))
    own = Space([parameter for parameter in SPACE.parameters if parameter.name == name], [])
    verify_on_inputs(store, manager(tmp_path, executor), STUDY, [large(space=own)])
    assert all(configuration.keys() == {name} for _, configuration in executor.launched)
    assert bool(executor.launched) is runs
    assert ("the winner is the default there" in summarise(store).best_text()) is not runs


def test_answers_must_agree_with_those_of_the_default_there(store, tmp_path):
    seen = []

    def model(configuration):
        return replace(took(timed(configuration)), answer=Answer("rows", 7.0, 0.0))

    class Listening(PaperExecutor):
        def submit(self, task):
            seen.append(task.reference)
            super().submit(task)

    verify_on_inputs(store, manager(tmp_path, Listening(model)), STUDY, [large()])
    assert seen[0] is None
    assert all(reference == Answer("rows", 7.0, 0.0) for reference in seen[1:])


def test_these_runs_are_no_runs_of_the_study(store, tmp_path):
    before = summarise(store)
    verify_on_inputs(store, manager(tmp_path, PaperExecutor(other_way_round)), STUDY, [large()])
    after = summarise(store)
    assert after.standings.value(after.best) == before.standings.value(before.best)
    assert after.ledger.saved_per_run == before.ledger.saved_per_run
    assert after.ledger.comparisons > before.ledger.comparisons
    assert run_to_use(store, after).series.kind is not SeriesKind.WORKLOAD


def test_nothing_runs_when_nothing_won(tmp_path):
    found = new_store(tmp_path)
    add(found, (DEFAULT, 2.0), ({"np": 8, "malloc": "keep"}, 1.9))
    confirm(found, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    executor = PaperExecutor(noisy())
    verify_on_inputs(found, manager(tmp_path, executor), STUDY, [large()])
    assert executor.launched == []


def test_a_winner_that_fails_there_is_said_to(store, tmp_path):
    def model(configuration) -> Outcome:
        return took(1.0) if configuration == DEFAULT else failed(FailureKind.OUT_OF_MEMORY, "too large")

    verify_on_inputs(store, manager(Path(tmp_path), PaperExecutor(model)), STUDY, [large()])
    assert "too large" in summarise(store).best_text()
