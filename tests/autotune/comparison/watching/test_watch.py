"""A watch: fresh pairs of winner and default, judged against those of the verdict, and stored."""

from dataclasses import replace
from math import log
from xml.etree import ElementTree

import numpy as np
import pytest

from autotune.comparison.confirm import confirm
from autotune.comparison.watching import check as check_module
from autotune.comparison.watching.check import differences
from autotune.comparison.watching.judgement import Judgement, Quantity, pairs_of_a_check
from autotune.comparison.watching.junit import junit
from autotune.comparison.watching.watch import Watch
from autotune.errors import AutotuneError
from autotune.results.summary import summarise
from autotune.statistics.change import Shift
from objectives.base import FailureKind
from tests.support.contests import DEFAULT, SIMPLE, STUDY, add, manager, new_store, noisy, timed
from tests.support.fakes import SECONDS, PaperExecutor, failed, took


@pytest.fixture
def store(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    return store


def slower(winner=1.0, default=1.0, seed=1):
    rng = np.random.default_rng(seed)
    return lambda configuration: took(
        timed(configuration) * (winner if configuration.get("blas") else default) * float(np.exp(rng.normal(0.0, 0.01)))
    )


def check(store, tmp_path, model, session=None, at_most=10**9):
    executor = PaperExecutor(model, at_most=at_most)
    runs = manager(tmp_path, executor)
    runs.session = session or {}
    watch = Watch.of(store, STUDY.repeats.statistic)
    watch.check(store, runs, STUDY, 3)
    return watch.finding(), executor


def test_checks_that_find_the_same_raise_no_alarm_and_are_kept(store, tmp_path):
    for seed in range(3):
        finding, _ = check(store, tmp_path, slower(seed=seed))
    assert finding.alarms == []
    assert [entry.number for entry in finding.checks] == [1, 2, 3]
    assert [len(entry.pairs) for entry in finding.checks] == [3, 3, 3]
    assert "nothing has changed beyond the noise" in finding.lines()


def test_a_winner_that_is_slower_is_found_and_the_default_is_not_blamed(store, tmp_path):
    check(store, tmp_path, slower(seed=1))
    for seed in range(2, 5):
        finding, _ = check(store, tmp_path, slower(winner=1.05, seed=seed))
    assert "wins by less" in finding.alarms[0]
    assert "since check 2" in finding.alarms[0]
    assert not any("the default became" in alarm for alarm in finding.alarms)


def test_a_slower_machine_and_a_slower_winner_are_distinguished(store, tmp_path):
    for seed in range(4):
        finding, _ = check(store, tmp_path, slower(seed=seed))
    for seed in range(4, 7):
        finding, _ = check(store, tmp_path, slower(winner=1.1, default=1.1, seed=seed))
    assert {change.quantity.value for change in finding.changes} == {"default", "winner"}


def test_a_winner_that_lost_no_longer_wins(store, tmp_path):
    finding, _ = check(store, tmp_path, slower(winner=3.0))
    assert "no longer wins" in finding.alarms[0]
    assert finding.to_dict()["changes"][0]["since"] == 1


@pytest.mark.slow
def test_a_winner_that_fails_is_an_alarm(store, tmp_path):
    def model(configuration):
        return failed(FailureKind.APPLICATION_ERROR, "no such library") if configuration.get("blas") else took(2.0)

    finding, _ = check(store, tmp_path, model)
    assert finding.alarms == ["trial 1: application error: no such library"]
    after, executor = check(store, tmp_path, slower())
    assert after.alarms == []
    assert len(executor.launched) == 6, "the check that failed is over: this is another one"


def test_an_interrupted_check_resumes_on_the_same_day_only(store, tmp_path, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        check(store, tmp_path, slower(), at_most=3)
    finding, executor = check(store, tmp_path, slower())
    assert len(executor.launched) == 3
    assert [entry.number for entry in finding.checks] == [1]
    with pytest.raises(KeyboardInterrupt):
        check(store, tmp_path, slower(), at_most=3)
    monkeypatch.setattr(check_module, "_ONE_DAY", -check_module._ONE_DAY)
    finding, executor = check(store, tmp_path, slower())
    assert len(executor.launched) == 6
    assert [len(entry.pairs) for entry in finding.checks] == [3, 1, 3]


def test_changed_surroundings_are_reported(store, tmp_path):
    definition = store.definition
    now = replace(definition, identity={**definition.identity, "program": "melt 7.3"})
    session = {"host": "node8", "mpi": "Open MPI 5.0", "user": "ann"} | differences(definition, now)
    finding, _ = check(store, tmp_path, slower(), session | {"system": "Linux-6.6"})
    before = finding.at_verdict
    said = replace(finding, at_verdict={**before, "operating system": "Linux-6.1"}).surroundings
    assert "operating system: Linux-6.1 before, Linux-6.6 now" in said
    assert finding.checks[0].surroundings["program"] == "melt 7.3"
    assert not any("ann" in entry for entry in said)


def test_later_checks_are_compared_with_the_accepted_one(store, tmp_path):
    watch = Watch.of(store, STUDY.repeats.statistic)
    with pytest.raises(AutotuneError, match="nothing to accept"):
        watch.accept(store)
    check(store, tmp_path, slower(seed=1))
    finding, _ = check(store, tmp_path, slower(winner=1.3, seed=2))
    assert finding.alarms
    assert watch.accept(store) == 2
    finding, _ = check(store, tmp_path, slower(winner=1.3, seed=3))
    assert finding.alarms == []
    finding, _ = check(store, tmp_path, slower(winner=1.0, seed=4))
    assert "wins by more" in finding.alarms[0]


def test_a_watch_leaves_the_study_as_it_was(store, tmp_path):
    before = summarise(store)
    check(store, tmp_path, slower(winner=3.0))
    after = summarise(store)
    assert (after.best_text(), after.ledger) == (before.best_text(), before.ledger)


def test_without_a_winner_there_is_nothing_to_watch(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    with pytest.raises(AutotuneError, match="no verdict yet"):
        Watch.of(store, STUDY.repeats.statistic)
    confirm(store, manager(tmp_path, PaperExecutor(lambda _: took(1.0))), STUDY)
    with pytest.raises(AutotuneError, match="no winner to watch"):
        Watch.of(store, STUDY.repeats.statistic)


def test_an_uncertain_change_has_an_interval_with_both_signs(store, tmp_path):
    finding, _ = check(store, tmp_path, slower())

    def said(size, low, high):
        found = Shift(1e6, 1, log(size), log(low), log(high), (0.0, 0.0, 0.0))
        return replace(finding, judgement=Judgement({Quantity.DEFAULT: found})).sentences[0]

    assert "the default became 16.6% slower (-29.9 to 93.9)" in said(1.166, 0.701, 1.939)
    assert "the default became 14.2% faster (-42.7 to 48.4)" in said(0.858, 0.516, 1.427)
    assert "the default became 20.0% faster (10.0 to 30.0)" in said(0.8, 0.7, 0.9)


def test_noise_decides_how_many_pairs_a_check_has():
    assert pairs_of_a_check([(2.0, 1.0), (2.01, 1.0), (2.0, 1.01)], SECONDS) == 3
    assert pairs_of_a_check([(2.0, 1.0), (2.2, 1.0), (2.0, 1.1)], SECONDS) == 20


def test_junit_has_a_test_for_each_quantity_and_a_failure_for_each_alarm(store, tmp_path):
    finding, _ = check(store, tmp_path, slower(winner=3.0))
    suite = ElementTree.fromstring(junit(finding))
    cases = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    assert list(cases) == ["pairs", "gain", "default", "winner"]
    assert [name for name, failure in cases.items() if failure is not None] == ["gain", "winner"]
    assert "no longer wins" in cases["gain"].get("message")
    assert (suite.get("tests"), suite.get("failures")) == ("4", "2")


def test_junit_is_well_formed_for_any_output(store, tmp_path):
    printed = 'a < b & "c" \x1b[31m\x00 ]]> \ud800'
    model = lambda configuration: failed(FailureKind.APPLICATION_ERROR, printed)  # noqa: E731
    finding, _ = check(store, tmp_path, model)
    text = junit(finding).encode("utf-8")
    (failure,) = ElementTree.fromstring(text).iter("failure")
    assert 'a < b & "c"' in failure.get("message")
