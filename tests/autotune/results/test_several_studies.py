"""Several studies together: the mean, the score, and the reasons why studies are left out."""

import json
from dataclasses import replace

import pytest

from autotune.comparison.limit_verdict import LimitVerdict
from autotune.errors import StudyFileError
from autotune.records.limit import Breach, Limit
from autotune.results.several_studies import SeveralStudies, StudyResult
from autotune.results.summary import summarise
from autotune.statistics.verdict import Verdict
from objectives.base import FailureKind, Metric
from tests.autotune.results.test_known_configurations import study
from tests.autotune.results.test_summary import summary, trial
from tests.support.fakes import failed, took

TWICE = [(2.0, 1.0)] * 6
EIGHT_TIMES = [(8.0, 1.0)] * 6
NOISY = [(2.0, 1.0), (2.2, 1.0), (1.9, 1.0), (2.1, 1.0), (2.0, 1.0), (2.3, 1.0), (1.8, 1.0), (2.0, 1.0)]


def result(sqlite, name, *pairs, reference=None, seconds=1.0, **changes):
    return StudyResult(summarise(study(sqlite, name, *pairs, seconds=seconds, **changes)), reference)


def of(*results):
    return SeveralStudies(results)


def test_the_mean_is_the_geometric_mean_of_the_speed_ups(sqlite):
    several = of(result(sqlite, "one", *TWICE), result(sqlite, "two", *EIGHT_TIMES))
    assert several.speed_up == pytest.approx((4.0, 4.0, 4.0))
    assert several.sentence() == (
        "4.000 times as fast as the default configurations (95% interval 4.000 to 4.000, geometric mean of 2 studies)"
    )


def test_the_mean_of_one_study_is_its_verdict(sqlite):
    one = result(sqlite, "one", *NOISY)
    assert of(one).speed_up == pytest.approx((one.summary.speed_up.ratio, *one.summary.speed_up.interval))


def test_a_default_that_nothing_beats_counts_as_it_is(sqlite):
    kept = result(sqlite, "kept", seconds=4.0)
    assert of(kept, result(sqlite, "won", *[(4.0, 1.0)] * 6)).speed_up == pytest.approx((2.0, 2.0, 2.0))
    assert kept.sentence == "No configuration was better than the default."
    assert of(kept).sentence().startswith("No gain: 1.000 times as fast")


def test_a_winner_that_turned_out_slower_counts_as_the_default_that_is_kept(sqlite):
    assert of(result(sqlite, "slower", *[(1.0, 2.0)] * 6)).speed_up == (1.0, 1.0, 1.0)


def test_a_gain_that_may_be_noise_counts_as_it_was_measured(sqlite):
    several = of(result(sqlite, "one", *[(1.0, 1.1)] * 3, *[(1.2, 1.0)] * 3))
    assert several.speed_up[1] < 1.0 < several.speed_up[2]
    assert several.sentence().startswith("No significant gain: ")


def absent(one):
    assert one.speed_up(0.95) is None
    assert not one.to_dict(0.95)["speed_up"]
    return one.obstacle


def test_a_study_without_a_speed_up_is_left_out_with_the_reason(sqlite):
    looks = result(sqlite, "looks")
    few = result(sqlite, "few", *[(2.0, 1.0)] * 5)
    table = result(sqlite, "table", *TWICE, study={"decisions": {"over": ["np"]}})
    assert [absent(one) for one in (looks, few, table)] == [
        "not confirmed yet",
        "winner and default could not be compared",
        "it looks for a decision table and has no single winner",
    ]
    several = of(result(sqlite, "one", *TWICE), looks, few, table)
    assert several.speed_up == pytest.approx((2.0, 2.0, 2.0))
    assert "geometric mean of 1 of 4 studies); looks is not in the mean: not confirmed yet; few" in several.sentence()


def test_where_no_study_has_a_speed_up_there_is_no_mean():
    broken = StudyResult(summary(trial(0, failed(FailureKind.APPLICATION_ERROR))))
    nothing = of(broken)
    assert nothing.speed_up is None
    assert nothing.sentence() == (
        f"No study has a speed-up; {broken.study} is not in the mean: the default configuration failed"
    )
    assert nothing.to_dict()["speed_up"] is None


def test_a_default_that_breaks_a_limit_is_nothing_to_compare_with():
    limit = Limit(Metric("wall_s", "s"), -1.0, 1.5)
    verdict = Verdict(1, (1,), 1, 0.95, 0.05, tuple(TWICE))
    found = summary(trial(0, took(2.0), np=8), trial(1, took(1.0), np=4), verdict=verdict)
    broken = LimitVerdict((limit,), 6, 6, (Breach(limit, 2.0),))
    assert absent(StudyResult(replace(found, on_limits=broken))).startswith("the default breaks ")


def test_where_nothing_but_the_default_was_tried_nothing_is_known_of_it():
    assert absent(StudyResult(summary(trial(0, took(2.0), np=8)))) == "only the default was tried"


def test_all_intervals_have_the_lowest_confidence_of_the_verdicts_in_the_mean(sqlite):
    noisy = result(sqlite, "noisy", *NOISY)
    noisy.summary.standings.verdict = replace(noisy.summary.verdict, confidence=0.75)
    other = result(sqlite, "other", *NOISY)
    several = of(noisy, other)
    assert several.confidence == 0.75
    assert "75% interval" in several.sentence()
    assert other.speed_up(0.75)[1] > other.speed_up(0.95)[1]


def test_a_quality_has_no_pace(sqlite):
    loss = (Metric("wall_s", "", "minimize"),)
    several = of(result(sqlite, "one", *TWICE), result(sqlite, "two", *TWICE, metrics=loss))
    assert several.sentence().startswith("2.000 times as good as the default configurations")


def test_the_score_is_the_geometric_mean_over_the_references(sqlite):
    rate = (Metric("wall_s", "1/s", "maximize"),)
    faster = [(1.0, 2.0)] * 6
    time = result(sqlite, "time", *TWICE, reference=4.0)
    work = result(sqlite, "work", *faster, reference=8.0, seconds=3.0, metrics=rate)
    # 4 s against the winner's 1 s, and 2 a second against 8.
    assert time.score(0.95) == pytest.approx((4.0, 4.0, 4.0))
    assert work.score(0.95) == pytest.approx((0.25, 0.25, 0.25))
    several = of(time, work, result(sqlite, "other", *TWICE))
    assert several.score == pytest.approx((1.0, 1.0, 1.0))
    assert several.score_sentence() == "1 times the references (95% interval 1 to 1, 2 of 3 studies)"


def test_the_score_of_a_kept_default_is_that_of_its_runs():
    runs = [took(2.0)] * 6
    kept = StudyResult(summary(trial(0, *runs, np=8), trial(1, took(9.0), np=4)), reference=4.0)
    assert kept.score(0.95) == pytest.approx((2.0, 2.0, 2.0))
    few = StudyResult(summary(trial(0, *runs[:5], np=8), trial(1, took(9.0), np=4)), reference=4.0)
    assert few.score(0.95) is None
    assert of(few).score_sentence() == (
        f"No score against the references; without {few.study}: not known, or too few runs"
    )


def test_without_references_there_is_no_score(sqlite):
    assert of(result(sqlite, "one", *TWICE)).score_sentence() is None


def test_a_reference_is_of_the_metric_that_the_study_optimises(sqlite):
    one = summarise(study(sqlite, "one", *TWICE))
    several = SeveralStudies.of([one], {"one": {"gb_s": 7.0, "wall_s": 4.0}, "another": {"wall_s": 9.0}})
    assert several.score == pytest.approx((4.0, 4.0, 4.0))
    with pytest.raises(
        StudyFileError, match=r"optimises wall_s, but its references are values of gb_s: .* --set target=gb_s"
    ):
        SeveralStudies.of([one], {"one": {"gb_s": 7.0}})


def test_another_program_reads_it_all(sqlite):
    several = of(result(sqlite, "one", *NOISY, reference=3.0), result(sqlite, "looks"))
    told = json.loads(json.dumps(several.to_dict()))
    assert told["speed_up"]["low"] < told["speed_up"]["ratio"] < told["speed_up"]["high"]
    assert [one["study"] for one in told["studies"]] == ["one", "looks"]
    assert [one["not_in_the_mean"] for one in told["studies"]] == [None, "not confirmed yet"]
