"""The live panel, and the lines that a session prints about trials."""

from io import StringIO

import pytest
from rich.console import Console

from autotune.display.console import LiveDisplay, Running, Status, panel
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


def test_lines_of_trials_only_say_what_they_look_like():
    standings = stand(trial(0, 2.0), trial(1, 1.0))
    ran = standings.trials[1]
    assert ", looks 2x  " in Messages(standings).run_ended(ran, ran.outcomes[0])


def test_the_panel_says_why_the_job_of_a_run_waits():
    waits = Running(3, {"np": 2}, 60.0, waits="Not Running: no free nodes")
    status = Status(stand(trial(0, 2.0)), budget=20, finished=5, running=(waits, Running(4, {"np": 4}, 61.0)))
    assert drawn(status).splitlines()[-2:] == [
        "waiting: trial 3  01:00  np=2  Not Running: no free nodes",
        "running: trial 4  01:01  np=4",
    ]


def test_the_panel_says_what_is_waited_for_until_there_is_something_else():
    console = Console(file=StringIO(), force_terminal=True, width=100)
    display = LiveDisplay(console)
    display.update(Status(stand(), 20, 3))
    display.waits("waiting: others use 87% of the cores, process 788 python")
    shown = display._live.get_renderable()
    display.close()
    assert str(shown) == "waiting: others use 87% of the cores, process 788 python"
