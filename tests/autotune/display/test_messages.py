"""The message about a failed run: the reason, and the folder of its output."""

import pytest

from autotune.display.messages import Messages, failure_summary
from autotune.records.limit import Limit
from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.standings import Standings
from objectives.base import REMARK, FailureKind, Metric
from tests.support.fakes import SECONDS, capped, failed, took


def trial(number, outcome, folder):
    return TrialRecord(number, {"cc": "clang"}, (Run({}, number, outcome=outcome, job={"folder": str(folder)}),))


@pytest.fixture
def messages():
    return Messages(Standings({}, SECONDS, "median"))


def test_a_failed_run_names_the_folder_of_its_output(messages, tmp_path, monkeypatch):
    folder = tmp_path / "autotune-runs" / "mm" / "00001"
    folder.mkdir(parents=True)
    failure = failed(FailureKind.APPLICATION_ERROR, "no omp.h")
    said = f"trial 1: {failure.failure.value}: no omp.h  cc=clang"
    monkeypatch.chdir(tmp_path)
    assert messages.run_ended(trial(1, failure, folder), failure) == f"{said}  (output in autotune-runs/mm/00001)"
    monkeypatch.chdir(folder)
    assert messages.run_ended(trial(1, failure, folder.parent), failure).endswith(f"(output in {folder.parent})")
    assert messages.run_ended(trial(1, failure, tmp_path / "gone"), failure) == said
    assert messages.run_ended(trial(1, took(2.0), folder), took(2.0)) == "trial 1: 2 s  cc=clang"


def test_when_nothing_worked_each_reason_names_the_folder_of_its_newest_run(tmp_path, monkeypatch):
    (tmp_path / "2").mkdir()
    monkeypatch.chdir(tmp_path)
    trials = [
        trial(number, failed(FailureKind.APPLICATION_ERROR, "no omp.h"), tmp_path / str(number)) for number in (1, 2)
    ]
    assert failure_summary(trials).splitlines()[1] == "  2 times: no omp.h  (output in 2)"


@pytest.mark.parametrize(
    ("number", "outcome", "shown"),
    [
        (0, Outcome({"wall_s": 1.0, "p99": 10.0}), True),
        (1, capped(3.0), True),
        (1, failed(FailureKind.TIMED_OUT), True),
        (1, Outcome({"wall_s": 1.0, "p99": 30.0}), True),
        (1, Outcome({"wall_s": 1.0, "p99": 10.0}), False),
    ],
)
def test_the_log_shows_the_default_and_runs_that_failed_had_lost_or_break_a_limit(tmp_path, number, outcome, shown):
    ran = trial(number, outcome, tmp_path)
    limits = KeptLimits((Limit(Metric("p99", "ms"), high=20.0),))
    standings = Standings({0: trial(0, took(2.0), tmp_path), number: ran}, SECONDS, limits=limits)
    assert Messages(standings).is_news(ran, outcome) is shown


@pytest.mark.parametrize(("taken", "said"), [(0.43, True), (0.01, False), (None, False)])
def test_a_run_that_others_slowed_down_says_so(messages, tmp_path, taken, said):
    conditions = {} if taken is None else {"taken_share": taken, "others_share": 0.5}
    outcome = Outcome({"wall_s": 2.0}, conditions=conditions)
    line = messages.run_ended(trial(1, outcome, tmp_path), outcome)
    assert (", taken 43%" in line) is said


def test_what_a_run_has_to_tell_stands_behind_its_value(messages, tmp_path):
    outcome = Outcome({"wall_s": 2.0}, details={REMARK: "no efficiencies: no rank wrote"})
    assert messages.run_ended(trial(1, outcome, tmp_path), outcome).startswith(
        "trial 1: 2 s (no efficiencies: no rank wrote)"
    )


@pytest.mark.parametrize(("steps", "shown"), [((1,), True), ((1, 3), False), ((1, 3, 27), True)])
def test_the_log_shows_the_first_and_the_last_value_of_a_default_that_is_trained(steps, shown):
    ran = TrialRecord(0, {})
    for step in steps:
        ran = ran.with_run(Run({}, 0, outcome=took(2.0), steps=step, of=27))
    assert Messages(Standings({0: ran}, SECONDS)).is_news(ran, ran.runs[-1].outcome) is shown
