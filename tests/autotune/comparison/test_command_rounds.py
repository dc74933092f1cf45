"""Rounds of commands: their runs, their end, and the sentences about the result."""

from dataclasses import replace

import numpy as np
import pytest

from autotune.comparison.command_rounds import CommandRounds, CommandSide
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.execution.task import Task, with_checked_answer
from autotune.records.outcome import Outcome
from launchers import Job, Usage
from objectives.base import Answer, FailureKind
from objectives.command import CommandObjective, CommandOptions


class PaperStarter:
    """Says how long each command takes, without running it."""

    def __init__(self, folder, outcome_of):
        self.made = []
        self._folder = folder
        self._outcome_of = outcome_of

    def run(self, side, reference):
        self.made.append(side.label)
        outcome = self._outcome_of(side.label, self.made.count(side.label))
        if not isinstance(outcome, Outcome):
            outcome = took(outcome)
        objective = CommandObjective(CommandOptions(argv=["x"]))
        return Task(0, Job(("x",), self._folder), objective, reference), with_checked_answer(outcome, reference)

    def failure(self, outcome):
        return outcome.message


def took(seconds, taken=0.0, answer=None):
    found = None if answer is None else Answer("answer", answer, 0.0)
    conditions = {"taken_share": taken}
    return Outcome({"elapsed_s": seconds}, answer=found, usage=Usage(seconds), conditions=conditions)


def failed():
    return Outcome(failure=FailureKind.APPLICATION_ERROR, code="exit-code", message="ended with exit code 3: boom")


def rounds_of(folder, outcome_of, *labels, runs=None):
    sides = tuple(CommandSide(label, {"command": label}, None, (label,)) for label in labels)
    starter = PaperStarter(folder, outcome_of)
    return CommandRounds(sides, starter, runs, np.random.default_rng(0), lambda _: None, lambda _: None)


def noisy(mean_s, spread):
    draws = np.random.default_rng(1)
    return lambda label, _: mean_s[label] * float(np.exp(spread * draws.standard_normal()))


def test_two_commands_stop_when_their_ratio_is_precise_and_the_first_runs_do_not_count(tmp_path):
    rounds = rounds_of(
        tmp_path, lambda label, made: {"a": 2.0, "b": 1.0}[label] * (5.0 if made == 1 else 1.0), "a", "b"
    )
    found = rounds.run()
    (said,) = found.sentences()
    assert said.startswith(
        "b is 2.000 times as fast as a (median of the pairs' ratios; 95% interval 2.000 to 2.000, 8 "
    )
    assert rounds.starter.made.count("a") == 9
    # A side is first in one of two rounds.
    firsts = rounds.starter.made[2::2]
    assert firsts.count("a") == firsts.count("b") == 4


def test_the_faster_one_is_the_subject_whichever_was_given_first(tmp_path):
    found = rounds_of(tmp_path, noisy({"a": 1.0, "b": 1.1}, 0.001), "a", "b").run()
    assert found.sentences()[0].startswith("a is 1.1")


def test_no_difference_is_said_and_how_many_runs_would_make_it_precise(tmp_path):
    found = rounds_of(tmp_path, noisy({"a": 1.0, "b": 1.0}, 0.1), "a", "b", runs=12).run()
    said, more = found.sentences()
    assert said.startswith("no difference beyond the noise: b is ")
    assert "12 interleaved pairs" in said
    assert more == "more than 200 pairs would narrow that to 1.0% to either side"


def test_too_few_runs_give_no_interval(tmp_path):
    found = rounds_of(tmp_path, lambda label, _: {"a": 2.0, "b": 1.0}[label], "a", "b", runs=3).run()
    assert found.sentences() == ["b looks 2 times as fast as a; 3 of the 6 pairs of runs that an interval needs"]
    found = rounds_of(tmp_path, lambda label, _: {"a": 1.0, "b": 2.0}[label], "a", "b", runs=3).run()
    assert found.sentences()[0].startswith("a looks 2 times as fast as b; ")


def test_runs_that_are_unlikely_to_decide_are_left_out(tmp_path):
    values = {"a": [1.0, 1.2], "b": [1.2, 1.0]}
    found = rounds_of(tmp_path, lambda label, made: values[label][made % 2], "a", "b", runs=100).run()
    assert 16 <= len(found.table.pairs(0, 1)) < 30


def test_the_best_of_several_is_compared_again_in_fresh_pairs(tmp_path):
    rounds = rounds_of(tmp_path, noisy({"a": 1.0, "b": 0.9, "c": 0.5}, 0.005), "a", "b", "c")
    found = rounds.run()
    assert found.best == 2
    assert len(found.table.pairs(0, 1)) == len(found.fresh.pairs(0, 2)) == 8
    assert found.sentences()[0].startswith("c is 2.0")
    assert rounds.starter.made.count("b") == 9
    assert [row["fresh"] for row in found.rows()].count(True) == 16


def test_nothing_is_compared_again_if_the_first_looks_best(tmp_path):
    found = rounds_of(tmp_path, noisy({"a": 1.0, "b": 1.1, "c": 1.2}, 0.005), "a", "b", "c").run()
    assert found.sentences() == ["none looks faster than a"]
    assert found.fresh.runs == {}


def test_a_disturbed_run_is_set_aside_and_made_again(tmp_path, monkeypatch):
    monkeypatch.delenv("AUTOTUNE_NOISE", raising=False)
    found = rounds_of(
        tmp_path, lambda label, made: took(2.0, 0.5) if (label, made) == ("a", 3) else took(1.0), "a", "b"
    ).run()
    assert [run.outcome.disturbance.taken_share for run in found.aside] == [0.5]
    assert set(found.table.values(0).values()) == {1.0}
    assert [row["state"] for row in found.rows()].count("aside") == 1


def test_a_command_that_fails_at_once_ends_it_and_one_that_fails_at_times_is_said(tmp_path):
    with pytest.raises(NothingWorkedError, match="b: ended with exit code 3: boom"):
        rounds_of(tmp_path, lambda label, _: failed() if label == "b" else took(1.0), "a", "b").run()
    found = rounds_of(
        tmp_path, lambda label, made: failed() if label == "b" and made == 4 else took(1.0), "a", "b"
    ).run()
    assert len(found.table.pairs(0, 1)) == 8
    assert found.table.failures(1) == ["application error: ended with exit code 3: boom"]


def test_a_first_command_that_fails_too_often_is_not_compared_with(tmp_path):
    took_s = {"a": 1.0, "b": 0.9, "c": 1.0}
    found = rounds_of(
        tmp_path, lambda label, made: failed() if label == "a" and made > 4 else took_s[label], *took_s
    ).run()
    assert found.sentences() == ["a failed too often to compare with"]
    assert found.fresh.runs == {}


def test_failures_of_fresh_pairs_are_counted(tmp_path):
    took_s = {"a": 1.0, "b": 0.9, "c": 1.0}
    found = rounds_of(
        tmp_path, lambda label, made: failed() if label == "b" and made > 9 else took_s[label], *took_s
    ).run()
    assert found.sentences() == ["b failed too often to compare with"]
    assert (len(found.failures(1)), found.is_reliable(1)) == (3, False)


def test_a_command_that_cannot_be_started_is_no_failure_of_it(tmp_path):
    gone = replace(failed(), failure=FailureKind.INFRASTRUCTURE_ERROR, message="there is no program /nowhere/b")
    with pytest.raises(CannotRunHereError, match="there is no program /nowhere/b"):
        rounds_of(tmp_path, lambda label, _: gone if label == "b" else took(1.0), "a", "b").run()


def test_every_answer_must_be_that_of_the_first_command(tmp_path):
    with pytest.raises(NothingWorkedError, match="answer is 2, the reference run's is 1"):
        rounds_of(tmp_path, lambda label, _: took(1.0, answer={"a": 1.0, "b": 2.0}[label]), "a", "b").run()
