import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from objectives import patterns
from objectives.base import InfrastructureError, Metric, Output, PlanError
from objectives.command import plan
from objectives.training.objective import TrainingObjective

SLOW = r"(a|aa)+$"
SLOW_NUMBER = r"((?:a|aa)+)$"
ENDLESS = "a" * 60 + "!"


@pytest.fixture(autouse=True)
def little_time(monkeypatch):
    monkeypatch.setattr(patterns, "LIMIT_S", 0.05)


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
    with pytest.raises(InfrastructureError, match=r"the search for the pattern '.*a\|aa.* write one repeat") as failure:
        command(**options).objective.measure(output(ENDLESS))
    assert failure.value.code == "slow-pattern"


def test_other_threads_do_not_use_up_the_time_of_a_search(monkeypatch):
    text = "a" * 23 + "!"
    monkeypatch.setattr(patterns, "LIMIT_S", 60.0)
    began_s = time.thread_time()
    assert patterns.find_first(SLOW, text) is None
    monkeypatch.setattr(patterns, "LIMIT_S", 8.0 * (time.thread_time() - began_s))
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(lambda _: patterns.find_first(SLOW, text), range(16))) == [None] * 16


def test_a_slow_pattern_of_a_fact_is_an_error_of_the_study_file():
    fact = {"command": [sys.executable, "-c", f"print({ENDLESS!r})"], "pattern": SLOW}
    with pytest.raises(PlanError) as error:
        command(facts={"fast": fact})
    assert [problem.path for problem in error.value.problems] == ["options.facts.fast.pattern"]


def test_a_run_goes_on_without_progress_when_its_pattern_takes_too_long():
    read = command(progress=SLOW_NUMBER).objective.progress_reader()
    assert read(ENDLESS) is None
    assert read("aaa") is None


def test_a_training_is_read_without_end_neither_while_it_runs_nor_afterwards():
    training = TrainingObjective(("train",), Metric("loss", "", "minimize"), progress=(rf"step (\d+) {SLOW_NUMBER}",))
    line = f"step 1 {ENDLESS}"
    assert training.progress_reader()(line) is None
    with pytest.raises(InfrastructureError):
        training.measure(output(line))


@pytest.mark.parametrize(
    "pattern",
    [
        r"loss{e} (\d+)",
        r"x{s<3}=(\d)",
        r"\{d} (\d)",
        r"[{i}]{2} (\d)",
        r"\N{LATIN SMALL LETTER A}{2} (\d)",
        r"^(\d{1,2}){,3}$",
        r"^t=(\S)$",
    ],
)
def test_patterns_mean_what_they_mean_to_python(pattern):
    text = "loss{e} 12\nlose 3\nx{s<3}=4\ny=5\n{d} 6\n{} {} 7\naa 8\n12345\nt=1\nt=2\nt=1\n\udcff\u2028"
    expected = list(re.finditer(pattern, text, re.MULTILINE))
    assert expected
    assert patterns.find_first(pattern, text).span() == expected[0].span()
    assert patterns.find_last(pattern, text).groups() == expected[-1].groups()
    assert patterns.find_distinct(pattern, text) == {match[1] for match in expected}
