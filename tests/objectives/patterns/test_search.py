import os
import signal
import sys
from pathlib import Path

import pytest

from autotune.execution.task import Task, Watched
from launchers import EndReason, Job, JobState, JobStatus, Usage
from objectives.base import InfrastructureError, Metric, Output, PlanError
from objectives.command import plan
from objectives.patterns import search
from objectives.patterns.lines import read_each
from objectives.training.objective import TrainingObjective

SLOW = r"(a+)+$"
SLOW_NUMBER = r"((?:a+)+)$"
ENDLESS = "a" * 60 + "!"


@pytest.fixture(autouse=True)
def little_time(monkeypatch):
    monkeypatch.setattr(search, "LIMIT_S", 0.05)


def command(**options):
    asked = {"argv": [sys.executable, "--version"], **options}
    return plan(asked, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))


def output(text):
    return Output(text, "", JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(2.5)), Path("/nowhere"))


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": [{"name": "speed", "pattern": SLOW_NUMBER}]},
        {"answer": {"pattern": SLOW_NUMBER, "tolerance": 1e-6}},
        {"success": [SLOW]},
        {"failure": [SLOW]},
        {"unused": [SLOW]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_a_pattern_that_takes_too_long_is_a_failure_that_names_it_and_not_the_configurations_fault(options):
    with pytest.raises(InfrastructureError, match=r"the search for the pattern '.*a\+.* write one repeat") as failure:
        command(**options).objective.measure(output(ENDLESS))
    assert failure.value.code == "slow-pattern"


def test_a_slow_pattern_of_a_fact_is_an_error_of_the_study_file():
    fact = {"command": [sys.executable, "-c", f"print({ENDLESS!r})"], "pattern": SLOW}
    with pytest.raises(PlanError) as error:
        command(facts={"fast": fact})
    assert [problem.path for problem in error.value.problems] == ["options.facts.fast.pattern"]


def test_a_run_goes_on_without_progress_when_its_pattern_takes_too_long():
    read = command(progress=SLOW_NUMBER).objective.progress_reader()
    assert read(ENDLESS) is None
    assert read("aaa") is None


def test_lines_that_came_together_are_searched_with_one_question(monkeypatch):
    asked = []
    ask = search._SEARCHER.ask
    monkeypatch.setattr(search._SEARCHER, "ask", lambda *words: asked.append(words) or ask(*words))
    lines = [f"step {number} loss 0.{number}" for number in range(500)]
    job = Job(("a",), Path("/tmp"))
    watched = Watched(Task(0, job, command(progress=r"step (\d+)").objective))
    assert watched(lines) is False
    assert [step for step, _ in watched._watch.timeline][-1] == 499
    training = TrainingObjective(
        ("train",), Metric("loss", "", "minimize"), progress=(r"step (\d+) loss (\S+)",), first_step=0
    )
    said = list(read_each(training.progress_reader(), ["begin", *lines]))
    assert (said[0], said[1].step, said[-1].metrics) == (None, 1, {"loss": 0.499})
    assert len(asked) == 2


def test_a_training_is_read_without_end_neither_while_it_runs_nor_afterwards():
    training = TrainingObjective(("train",), Metric("loss", "", "minimize"), progress=(rf"step (\d+) {SLOW_NUMBER}",))
    line = f"step 1 {ENDLESS}"
    assert training.progress_reader()(line) is None
    with pytest.raises(InfrastructureError):
        training.measure(output(line))


def test_searches_go_on_after_one_that_took_too_long_and_after_the_child_was_killed():
    with pytest.raises(search.SlowPatternError):
        search.first(SLOW, ENDLESS)
    assert search.last(r"^t=(\d)$", "t=1\nt=2\nt=x").groups == ("2",)
    os.kill(search._SEARCHER._child.pid, signal.SIGKILL)
    assert search.distinct(r"^t=(\S)$", "t=1\nt=2\nt=1\n\udcff\u2028") == {"1", "2"}
