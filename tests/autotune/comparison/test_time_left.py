"""The time left until the verdict, from the runs so far."""

import pytest

from autotune.comparison.time_left import TimeLeft, rounds_left, tuning_left
from autotune.display.console import Status, time_left
from autotune.records.study import Run, TrialRecord
from autotune.statistics.standings import Standings
from tests.support.fakes import SECONDS, study_file, took

VERDICT = {"candidates": 2, "rounds": 3, "pairs": 6, "max_pairs": 10}


def trial(number, seconds):
    return TrialRecord(number, {"x": number}, (Run({}, number, outcome=took(seconds)),), settled=True)


def test_the_time_left_has_the_verdict_in_it():
    standings = Standings.of([trial(0, 10.0), trial(1, 2.0)], SECONDS)
    left = tuning_left(standings, study_file(budget={"trials": 4}, verdict=VERDICT))
    tuning = 6.0 * 2
    # At least the pairs; at most all pairs after a choice among the candidates.
    assert left == TimeLeft(tuning + 6 * 12.0, pytest.approx(tuning + 10 * 12.0 + 3 * 2 * 2.0))
    fewer = tuning_left(standings, study_file(budget={"trials": 1}, verdict=VERDICT))
    assert fewer == TimeLeft(left.least_s - tuning, left.most_s - tuning)
    assert tuning_left(Standings.of([], SECONDS), study_file()) is None
    failed = Standings.of([TrialRecord(0, {}, (), settled=True)], SECONDS)
    assert tuning_left(failed, study_file(budget={"trials": 4})) == TimeLeft()


def test_rounds_take_as_long_as_their_sides_have_so_far():
    runs = [(0, Run({}, outcome=took(10.0))), (1, Run({}, outcome=took(2.0)))]
    assert rounds_left(runs, [0, 1, 2]) == TimeLeft(18.0, 18.0)
    assert rounds_left([], [0]) is None


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((None, None), ""),
        ((90.0, None), "about 01:30 left"),
        ((90.0, 95.0), "about 01:30 left"),
        ((90.0, 200.0), "about 01:30 to 03:20 left"),
    ],
)
def test_an_uncertain_time_is_shown_as_a_range(left, said):
    status = Status(Standings({}, SECONDS), 4, 1, left_s=left[0], left_most_s=left[1])
    assert time_left(status) == said
