"""The shares of time that other processes took from runs, in the order of time."""

from dataclasses import replace

from autotune.records.outcome import ANOTHER_PACE, DISTURBED
from autotune.records.series import TUNING, Series
from autotune.records.study import Run
from autotune.results.disturbed_runs import disturbance_sentence, taken_shares
from tests.support.fakes import took


def run(started, share=None, series=TUNING, trial=1):
    conditions = {} if share is None else {"taken_share": share}
    return Run({"np": 8}, trial, series, outcome=replace(took(1.0), conditions=conditions), started=started)


def test_shares_are_in_order_of_start_with_their_purpose():
    aside = run("2026-11-23T10:02:00+00:00", 0.5, Series.verdict(3).aside, trial=None)
    aside = replace(aside, outcome=aside.outcome.set_aside(DISTURBED, "was disturbed"))
    runs = [aside, run("2026-11-23T10:01:00+00:00", 0.1), run("2026-11-23T10:00:00+00:00"), run("yesterday", 0.9)]
    found = taken_shares(runs)
    assert [(one.at_s, one.share, one.trial, one.purpose, one.is_disturbed) for one in found] == [
        (0.0, 0.1, 1, "tuning", False),
        (60.0, 0.5, None, "verdict", True),
    ]
    assert (
        disturbance_sentence(found[:1]) == "others kept runs from running for 10.0% of their time (median), 10% at most"
    )
    assert disturbance_sentence(found).endswith("; of 2 runs, 1 set aside for that")
    assert disturbance_sentence(()) == ""


def test_runs_set_aside_for_the_pace_of_the_machine_are_not_disturbed():
    paced = run("2026-11-23T10:00:00+00:00", 0.01, TUNING.aside)
    paced = replace(paced, outcome=paced.outcome.set_aside(ANOTHER_PACE, "the machine was slower"))
    assert "set aside" not in disturbance_sentence(taken_shares([paced]))
