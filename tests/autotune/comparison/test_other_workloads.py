from dataclasses import replace
from pathlib import Path

import pytest

from autotune.batch.winner_script import run_to_use
from autotune.comparison.confirm import confirm
from autotune.comparison.findings import stored_workload_comparisons
from autotune.comparison.other_workloads import compare_on_workloads
from autotune.records.outcome import Outcome
from autotune.records.series import SeriesKind
from autotune.records.workload import Workload
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


def workload(name="large", space=SPACE, **identity):
    return Workload(name, Plan(PaperObjective(), (), (), {"rows": 7}, {"workload": name, **identity}), space)


def other_way_round(configuration):
    return took(1.0 / timed(configuration))


def test_a_winner_that_loses_on_another_workload_is_said_to(store, tmp_path):
    executor = PaperExecutor(other_way_round)
    compare_on_workloads(store, manager(tmp_path, executor), STUDY, [workload()])
    (found,) = summarise(store).carried
    assert found.verdict.slower(SECONDS)
    assert dict(found.facts) == {"rows": 7}
    assert "on workload large: Slower than the default" in summarise(store).best_text()
    assert summarise(store).to_dict()["workloads"]["large"]["high"] < 1
    # The default ran first: its answer is the reference there.
    assert executor.launched[0][1] == DEFAULT


def test_what_was_interrupted_goes_on_and_what_is_done_is_not_repeated(store, tmp_path):
    first = PaperExecutor(noisy(), at_most=5)
    with pytest.raises(KeyboardInterrupt):
        compare_on_workloads(store, manager(tmp_path, first), STUDY, [workload()])
    second = PaperExecutor(noisy())
    compare_on_workloads(store, manager(tmp_path, second), STUDY, [workload()])
    third = PaperExecutor(noisy())
    compare_on_workloads(store, manager(tmp_path, third), STUDY, [workload()])
    assert third.launched == []
    assert len(first.launched) + len(second.launched) == 2 * len(stored_workload_comparisons(store)[0].verdict.pairs)


def test_a_verdict_there_has_the_confidence_of_the_newest_session(store, tmp_path):
    compare_on_workloads(store, manager(tmp_path, PaperExecutor(noisy())), STUDY, [workload()])
    url = f"sqlite:///{tmp_path / 'autotune.db'}"
    continued = StudyStore.create(url, "paper", definition(SPACE, study={"verdict": {"confidence": 0.75}}))
    (found,) = stored_workload_comparisons(continued)
    assert "75% interval" in found.sentence(SECONDS)


def test_another_problem_of_the_same_name_is_measured_anew(store, tmp_path):
    compare_on_workloads(store, manager(tmp_path, PaperExecutor(noisy())), STUDY, [workload()])
    executor = PaperExecutor(noisy())
    compare_on_workloads(store, manager(tmp_path, executor), STUDY, [workload(program="newer")])
    assert executor.launched


def test_a_configuration_that_is_not_valid_there_is_not_run(store, tmp_path):
    executor = PaperExecutor(noisy())
    small = Space([Integer.range("np", 1, 4, default=4)], [])
    compare_on_workloads(store, manager(tmp_path, executor), STUDY, [workload(space=small)])
    assert executor.launched == []
    assert "cannot be compared: the default is not valid there" in summarise(store).best_text()


def test_answers_must_agree_with_that_workloads_own(store, tmp_path):
    seen = []

    def model(configuration):
        return replace(took(timed(configuration)), answer=Answer("rows", 7.0, 0.0))

    class Listening(PaperExecutor):
        def submit(self, task):
            seen.append(task.reference)
            super().submit(task)

    compare_on_workloads(store, manager(tmp_path, Listening(model)), STUDY, [workload()])
    assert seen[0] is None
    assert all(reference == Answer("rows", 7.0, 0.0) for reference in seen[1:])


def test_runs_of_another_workload_are_no_runs_of_the_study(store, tmp_path):
    before = summarise(store)
    compare_on_workloads(store, manager(tmp_path, PaperExecutor(other_way_round)), STUDY, [workload()])
    after = summarise(store)
    assert after.standings.value(after.best) == before.standings.value(before.best)
    assert after.ledger.saved_per_run == before.ledger.saved_per_run
    assert after.ledger.comparisons > before.ledger.comparisons
    assert run_to_use(store, after).series.kind is not SeriesKind.WORKLOAD


def test_nothing_is_carried_when_nothing_won(tmp_path):
    found = new_store(tmp_path)
    add(found, (DEFAULT, 2.0), ({"np": 8, "malloc": "keep"}, 1.9))
    confirm(found, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    executor = PaperExecutor(noisy())
    compare_on_workloads(found, manager(tmp_path, executor), STUDY, [workload()])
    assert executor.launched == []


def test_a_winner_that_fails_there_is_said_to(store, tmp_path):
    def model(configuration) -> Outcome:
        return took(1.0) if configuration == DEFAULT else failed(FailureKind.OUT_OF_MEMORY, "too large")

    compare_on_workloads(store, manager(Path(tmp_path), PaperExecutor(model)), STUDY, [workload()])
    assert "too large" in summarise(store).best_text()
