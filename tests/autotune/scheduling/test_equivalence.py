from dataclasses import replace

from autotune.records.study import Run, TrialRecord
from autotune.scheduling.equivalence import Equivalence
from objectives.base import FailureKind
from tests.support.fakes import failed, took


def trial(number, configuration, *outcomes):
    return TrialRecord(
        number, configuration, tuple(Run(configuration, number, outcome=outcome) for outcome in outcomes)
    )


def said_unused(*names):
    return replace(took(1.0), unused=names)


def test_what_had_no_effect_whenever_it_was_set_has_none():
    trials = [
        trial(0, {"a": 1}, took(1.0)),
        trial(1, {"a": 2, "b": 1}, said_unused("b")),
        trial(2, {"a": 1, "b": 2}, said_unused("b")),
    ]
    assert Equivalence.of(trials, None).inert == {"b"}
    same = Equivalence.of(trials, None)
    assert same.twin({"a": 2, "b": 9}).number == 1
    assert same.twin({"a": 3, "b": 1}) is None


def test_one_run_is_not_enough_to_say_so_and_one_effect_is_enough_to_deny_it():
    once = [trial(1, {"b": 1}, said_unused("b"))]
    assert Equivalence.of(once, None).inert == set()
    more = [*once, trial(2, {"b": 2}, said_unused("b")), trial(3, {"b": 3}, took(1.0))]
    assert Equivalence.of(more, None).inert == set()


def test_the_objective_is_asked_about_measured_trials_only():
    asked = []

    def alike(one, measured, details):
        asked.append((dict(one), dict(measured), dict(details)))
        return True

    trials = [
        trial(0, {"a": 1}, failed(FailureKind.TIMED_OUT)),
        trial(1, {"a": 2}, failed(FailureKind.TIMED_OUT), replace(took(1.0), details={"protocols": ["x"]})),
    ]
    assert Equivalence.of(trials, alike).twin({"a": 3}).number == 1
    assert asked == [({"a": 3}, {"a": 2}, {"protocols": ["x"]})]


def test_what_is_passed_over_again_and_again_is_said_once():
    lines, same = [], Equivalence.of([trial(1, {"a": 1}, took(1.0))], lambda *_: True)
    for _ in range(3):
        shows_nothing = same.judge(lines.append, lines.append)
        assert [shows_nothing({"a": value}) for value in (2, 3)] == [True, True]
    assert lines == [f"passed over, the same in effect as trial 1: a={value}" for value in (2, 3)]


def test_nothing_is_the_same_as_nothing():
    assert Equivalence.of([], lambda *_: True).twin({"a": 1}) is None


def test_what_is_learnt_bit_by_bit_is_the_same_as_at_once():
    first, second = trial(1, {"a": 2, "b": 1}, said_unused("b")), trial(2, {"a": 1, "b": 2}, said_unused("b"))
    same = Equivalence.of([first], None)
    assert same.twin({"a": 2, "b": 2}) is None
    same.learn(second)
    assert same.inert == {"b"}
    assert same.twin({"a": 2, "b": 2}) is first
    # Another run of the second shows an effect only if the program no longer denies one.
    same.learn(trial(2, {"a": 1, "b": 2}, took(1.0)))
    assert same.inert == set()
    assert same.twin({"a": 2, "b": 2}) is None
    assert same.twin({"a": 2, "b": 1}) is first


def test_of_several_twins_the_earliest_is_named():
    twins = [trial(number, {"a": 1}, took(1.0)) for number in (5, 3, 4)]
    assert Equivalence.of(twins, None).twin({"a": 1}).number == 3
    assert Equivalence.of(twins, lambda *_: True).twin({"a": 2}).number == 3
