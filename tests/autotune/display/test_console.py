"""The live panel, and the lines that a session prints about trials."""

from io import StringIO

import pytest
from rich.console import Console

from autotune.display.console import LiveDisplay, PlainDisplay, Row, Running, Status, panel
from autotune.display.messages import Messages
from autotune.statistics.verdict import Verdict
from objectives.base import Metric
from tests.autotune.statistics.test_standings import METRICS, stand, trial

LOSS = Metric("value", "")


def drawn(status):
    """Return the panel as text."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(panel(status))
    return capture.get()


@pytest.mark.parametrize("metric", METRICS)
def test_the_panel_says_what_the_best_looks_like_until_the_verdict_says_it(metric):
    better = 1.0 if metric.direction == "minimize" else 4.0
    standings = stand(trial(0, 2.0), trial(3, better), metric=metric)
    status = Status(standings, budget=20, finished=2)
    assert "looks 2 times as fast as the default" in drawn(status)
    pair = (3.6, 2.0) if metric.direction == "minimize" else (2.0, 3.6)
    standings.verdict = Verdict(3, (3,), 1, 0.95, None, (pair,) * 6)
    assert "best: trial 3" in drawn(status)
    assert "1.800 times as fast as the default" in drawn(status)


def test_the_panel_has_no_speed_of_a_loss():
    text = drawn(Status(stand(trial(0, 2.0), trial(1, 1.0), metric=LOSS), budget=20, finished=2))
    assert "looks 2 times lower in value than the default" in text
    assert "fast" not in text
    assert "speed" not in text


def test_the_panel_of_a_comparison_names_its_subject_and_not_the_best():
    status = Status(stand(trial(0, 2.0), trial(1, 1.0)), budget=8, finished=0, subject="what each option is worth")
    assert "what each option is worth" in drawn(status)
    assert "best:" not in drawn(status)


def test_the_panel_of_a_comparison_begins_its_rows_with_the_configurations():
    compared = (Row({"np": 4}, "looks 2x by 3 rounds", "trial 1"),)
    running = (Running(None, {"np": 8}, 5.0, label="default"),)
    status = Status(stand(trial(0, 2.0)), 8, 3, running, phase="confirming", subject="trial 1", compared=compared)
    assert [line.rstrip() for line in drawn(status).splitlines()[1:]] == [
        "trial 1",
        "np=4  looks 2x by 3 rounds  trial 1",
        "np=8                        default runs, 00:05",
    ]


@pytest.mark.parametrize("verbose", [True, False])
def test_a_log_has_details_if_it_is_verbose_and_each_legend_once(verbose):
    file = StringIO()
    display = PlainDisplay(Console(file=file, width=200), verbose=verbose)
    display.detail("trial 1: 3 s, looks 0.7x, taken 14%")
    display.line("best so far: trial 2, 1 s, looks 2x")
    display.line("best so far: trial 3, 0.5 s, looks 4x")
    lines = file.getvalue().splitlines()
    legends = [line for line in lines if line.startswith("  (")]
    assert [line.startswith("  (looks: ") for line in legends] == ([False, True] if verbose else [True])
    assert len(lines) - len(legends) == (3 if verbose else 2)
    assert lines[-1] == "best so far: trial 3, 0.5 s, looks 4x"


def test_of_disturbed_runs_each_line_is_short_and_the_rule_is_said_once():
    file = StringIO()
    display = PlainDisplay(Console(file=file, width=80))
    for number in (1, 2):
        display.line(f"trial {number}: set aside, taken 40%; runs again")
    lines = file.getvalue().splitlines()
    assert [line.partition(":")[0] for line in lines] == ["trial 1", "  (set aside", "  (taken", "trial 2"]


def test_lines_of_trials_only_say_what_they_look_like():
    standings = stand(trial(0, 2.0), trial(1, 1.0))
    ran = standings.trials[1]
    assert ", looks 2x  " in Messages(standings).run_ended(ran, ran.outcomes[0])


def test_the_panel_says_why_the_job_of_a_run_waits():
    waits = Running(3, {"np": 2}, 60.0, waits="Not Running: no free nodes")
    status = Status(stand(trial(0, 2.0)), budget=20, finished=5, running=(waits, Running(4, {"np": 4}, 61.0)))
    assert [line.split() for line in drawn(status).splitlines()[-2:]] == [
        ["np=2", "trial", "3", "waits,", "01:00:", "Not", "Running:", "no", "free", "nodes"],
        ["np=4", "trial", "4", "runs,", "01:01"],
    ]


def test_the_panel_says_what_is_waited_for_until_there_is_something_else():
    console = Console(file=StringIO(), force_terminal=True, width=100)
    display = LiveDisplay(console)
    display.update(Status(stand(), 20, 3))
    display.waits("waiting: others use 87% of the cores, process 788 python")
    shown = display._live.get_renderable()
    display.close()
    assert str(shown) == "waiting: others use 87% of the cores, process 788 python"
    assert console.file.getvalue().count("788 python") <= 1, "above the panel it would be read twice"
