"""One figure of several studies: what each gives to it, and what is said of those that give nothing."""

import json
from dataclasses import replace

import pytest

from autotune.comparison.limit_verdict import LimitVerdict
from autotune.records.limit import Breach, Limit
from autotune.results.suite import Suite, SuiteMember
from autotune.results.summary import summarise
from autotune.statistics.verdict import Verdict
from objectives.base import FailureKind, Metric
from tests.autotune.results.test_known import study
from tests.autotune.results.test_summary import summary, trial
from tests.support.fakes import failed, took

TWICE = [(2.0, 1.0)] * 6
EIGHT_TIMES = [(8.0, 1.0)] * 6
NOISY = [(2.0, 1.0), (2.2, 1.0), (1.9, 1.0), (2.1, 1.0), (2.0, 1.0), (2.3, 1.0), (1.8, 1.0), (2.0, 1.0)]


def member(sqlite, name, *pairs, weight=1.0, reference=None, seconds=1.0, **changes):
    return SuiteMember(name, weight, reference, summarise(study(sqlite, name, *pairs, seconds=seconds, **changes)))


def of(*members):
    return Suite("all", members)


def test_the_figure_is_the_geometric_mean_of_the_speed_ups(sqlite):
    suite = of(member(sqlite, "one", *TWICE), member(sqlite, "two", *EIGHT_TIMES))
    assert suite.figure == pytest.approx((4.0, 4.0, 4.0))
    assert suite.sentence() == (
        "4.000 times as fast as the default configurations (95% interval 4.000 to 4.000, geometric mean of 2 studies)"
    )


def test_weights_say_how_much_each_counts(sqlite):
    suite = of(member(sqlite, "one", *TWICE, weight=3.0), member(sqlite, "two", *EIGHT_TIMES))
    assert suite.figure[0] == pytest.approx(2.0**1.5)
    assert "weighted geometric mean of 2 studies" in suite.sentence()


def test_the_figure_of_one_study_is_its_verdict(sqlite):
    one = member(sqlite, "one", *NOISY)
    assert of(one).figure == pytest.approx((one.summary.speed_up.ratio, *one.summary.speed_up.interval))


def test_a_default_that_nothing_beats_counts_as_it_is(sqlite):
    kept = member(sqlite, "kept", seconds=4.0)
    assert of(kept, member(sqlite, "won", *[(4.0, 1.0)] * 6)).figure == pytest.approx((2.0, 2.0, 2.0))
    assert kept.sentence == "No configuration was better than the default."
    assert of(kept).sentence().startswith("No gain: 1.000 times as fast")


def test_a_winner_that_turned_out_slower_counts_as_the_default_that_is_kept(sqlite):
    slower = member(sqlite, "slower", *[(1.0, 2.0)] * 6)
    assert of(slower).figure == (1.0, 1.0, 1.0)


def test_a_gain_that_may_be_noise_is_told_as_it_was_measured(sqlite):
    suite = of(member(sqlite, "one", *[(1.0, 1.1)] * 3, *[(1.2, 1.0)] * 3))
    assert suite.figure[1] < 1.0 < suite.figure[2]
    assert suite.sentence().startswith("No significant gain: ")


def absent(one):
    assert one.speed_up(0.95) is None
    assert not one.to_dict(0.95)["speed_up"]
    return one.obstacle


def test_what_has_no_figure_is_left_out_and_said(sqlite):
    looks = member(sqlite, "looks")
    few = member(sqlite, "few", *[(2.0, 1.0)] * 5)
    missing = SuiteMember("missing", why="no gcc here")
    assert [absent(one) for one in (looks, few, missing)] == [
        "not confirmed yet",
        "winner and default could not be compared",
        "no gcc here",
    ]
    suite = of(member(sqlite, "one", *TWICE), looks, few, missing)
    assert suite.figure == pytest.approx((2.0, 2.0, 2.0))
    assert "geometric mean of 1 of 4 studies); looks is not in the mean: not confirmed yet; few" in suite.sentence()


def test_a_suite_of_which_nothing_worked_has_no_figure():
    broken = SuiteMember("broken", summary=summary(trial(0, failed(FailureKind.APPLICATION_ERROR))))
    nothing = of(broken, SuiteMember("none"))
    assert nothing.figure is None
    assert nothing.sentence() == (
        "No study of the suite has a figure; broken is not in the mean: the default configuration failed; "
        "none is not in the mean: not tuned"
    )
    assert nothing.to_dict()["speed_up"] is None


def test_a_default_that_breaks_a_limit_is_nothing_to_compare_with():
    limit = Limit(Metric("wall_s", "s"), -1.0, 1.5)
    verdict = Verdict(1, (1,), 1, 0.95, 0.05, tuple(TWICE))
    found = summary(trial(0, took(2.0), np=8), trial(1, took(1.0), np=4), verdict=verdict)
    broken = LimitVerdict((limit,), 6, 6, (Breach(limit, 2.0),))
    assert absent(SuiteMember("limited", summary=replace(found, on_limits=broken))).startswith("the default breaks ")


def test_where_nothing_but_the_default_was_tried_nothing_is_known_of_it():
    alone = SuiteMember("alone", summary=summary(trial(0, took(2.0), np=8)))
    assert absent(alone) == "nothing but the default was tried"


def test_a_study_that_could_not_go_on_keeps_its_verdict_and_says_so(sqlite):
    one = replace(member(sqlite, "one", *TWICE), why="the program is gone")
    assert one.speed_up(0.95) == pytest.approx((2.0, 2.0, 2.0))
    assert one.sentence.startswith("the program is gone; before that: 2.000 times as fast")
    kept = replace(member(sqlite, "kept", seconds=4.0), why="the program is gone")
    assert absent(kept) == "the program is gone"


def test_intervals_come_down_to_the_lowest_confidence(sqlite):
    noisy = member(sqlite, "noisy", *NOISY)
    sure = replace(noisy.summary.verdict, confidence=0.75)
    noisy.summary.standings.verdict = sure
    suite = of(noisy, member(sqlite, "other", *NOISY))
    assert suite.confidence == 0.75
    assert "75% interval" in suite.sentence()
    assert suite.members[1].speed_up(0.75)[1] > suite.members[1].speed_up(0.95)[1]
    # What has no part in the mean does not lower it.
    assert of(replace(noisy, why="gone", summary=None), suite.members[1]).confidence == 0.95


def test_a_quality_has_no_pace(sqlite):
    loss = (Metric("wall_s", "", "minimize"),)
    suite = of(member(sqlite, "one", *TWICE), member(sqlite, "two", *TWICE, metrics=loss))
    assert suite.sentence().startswith("2.000 times as good as the default configurations")


def test_a_replay_is_not_passed_off_as_runs(sqlite):
    replayed = member(sqlite, "told", *TWICE, objective="replay")
    assert of(replayed).text().splitlines()[0] == (
        "told: replay of recorded measurements: times are simulated, nothing runs"
    )
    assert of(replayed).to_dict()["members"][0]["replay"] is True


def test_the_score_is_the_geometric_mean_over_the_references(sqlite):
    rate = (Metric("wall_s", "1/s", "maximize"),)
    faster = [(1.0, 2.0)] * 6
    time = member(sqlite, "time", *TWICE, reference=4.0)
    work = member(sqlite, "work", *faster, reference=8.0, seconds=3.0, metrics=rate)
    # 4 s against the winner's 1 s, and 2 a second against 8.
    assert time.score(0.95) == pytest.approx((4.0, 4.0, 4.0))
    assert work.score(0.95) == pytest.approx((0.25, 0.25, 0.25))
    suite = of(time, work, member(sqlite, "other", *TWICE))
    assert suite.score == pytest.approx((1.0, 1.0, 1.0))
    assert suite.score_sentence() == "1 times the references (95% interval 1 to 1, 2 of 3 studies)"
    assert "\nscore: 1 times the references" in suite.text()


def test_the_score_of_a_kept_default_is_that_of_its_runs():
    runs = [took(2.0)] * 6
    kept = SuiteMember("kept", reference=4.0, summary=summary(trial(0, *runs, np=8), trial(1, took(9.0), np=4)))
    assert kept.score(0.95) == pytest.approx((2.0, 2.0, 2.0))
    few = SuiteMember("few", reference=4.0, summary=summary(trial(0, *runs[:5], np=8), trial(1, took(9.0), np=4)))
    assert few.score(0.95) is None
    assert of(few).score_sentence() == "No score against the references; without few: not known, or too few runs"


def test_without_references_there_is_no_score(sqlite):
    suite = of(member(sqlite, "one", *TWICE))
    assert suite.score_sentence() is None
    assert "score" not in suite.text()


def test_another_program_reads_it_all(sqlite):
    suite = of(member(sqlite, "one", *NOISY, weight=2.0, reference=3.0), SuiteMember("none", why="no"))
    told = json.loads(json.dumps(suite.to_dict()))
    assert told["speed_up"]["low"] < told["speed_up"]["ratio"] < told["speed_up"]["high"]
    assert [one["study"] for one in told["members"]] == ["one", "none"]
    assert [one["not_in_the_mean"] for one in told["members"]] == [None, "no"]
