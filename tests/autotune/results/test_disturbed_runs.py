"""The shares of time that other processes took from runs, in the order of time."""

from dataclasses import replace

from autotune.records.outcome import ANOTHER_PACE, DISTURBED
from autotune.records.series import TUNING, Series
from autotune.records.study import Run
from autotune.results.disturbed_runs import disturbance_sentence, taken_shares
from autotune.results.summary import Summary
from autotune.statistics.standings import Standings
from tests.autotune.results.test_summary import trial, verdict_on
from tests.support.fakes import SECONDS, definition, small_space, took


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


def accepted(share, mode="accept"):
    """Return the summary of a study in which others took `share` of each run."""
    study = {"noise": {"mode": mode}}
    trials = [trial(0, took(2.0), np=8), trial(1, took(1.0), np=4)]
    standings = Standings.of(trials, SECONDS, verdict=verdict_on(1, *[(2.0, 1.0)] * 6))
    taken = taken_shares([run(f"2026-11-23T10:0{minute}:00+00:00", share) for minute in range(3)])
    return Summary("sumx", definition(small_space(), study=study), standings, taken=taken)


def test_best_doubts_runs_that_count_though_others_took_most_of_their_time():
    doubts = [line for line in accepted(0.78).best_text().splitlines() if line.startswith("doubt: ")]
    assert len(doubts) == 2
    assert doubts[0].startswith("doubt: every pair gave exactly the same values")
    assert doubts[1] == (
        "doubt: other programs took 78% of the runs' time (median), and these runs count because of --noise accept: "
        "measure again on a quiet machine"
    )


def test_runs_that_others_hardly_disturbed_are_not_doubted():
    assert accepted(0.02).taken_doubt is None
    assert accepted(0.78, mode="wait").taken_doubt is None
