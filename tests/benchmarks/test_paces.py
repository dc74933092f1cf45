"""Recorded paces: what a shorter run takes, and when a study had found what is good."""

import pytest

from autotune.records.outcome import Outcome
from autotune.records.series import TUNING, Series
from autotune.records.study import Run
from benchmarks.fidelity import found_after
from benchmarks.hyperband import Trainings, epochs_until, trainings, with_a_default
from benchmarks.paces.tables import PaceTable, tables
from benchmarks.small_trainings import ERROR, SCORE
from launchers import Usage
from spaces import Choice, Float, Space
from tests.support.fakes import SECONDS

SPACE = Space([Choice("kind", ("plain", "fast"), default="plain")])
TABLE = PaceTable(SPACE, {("plain",): ((10, 2.0), (20, 3.0), (100, 11.0), (100, 11.5))})


def run(trial, seconds, series=TUNING):
    outcome = Outcome(metrics={SECONDS.name: seconds}, usage=Usage(seconds))
    return Run(configuration={}, trial=trial, series=series, outcome=outcome)


def test_a_shorter_run_ends_as_a_whole_one_does():
    told = TABLE.told({"kind": "plain"}, 60)
    # Half way between two steps that were told, and half a second for the end.
    assert told == ((10, 2.0), (20, 3.0), (60, pytest.approx(7.0)), (60, pytest.approx(7.5)))
    assert TABLE.seconds({"kind": "plain"}, 100) == TABLE.seconds({"kind": "plain"}, 1000) == 11.5


def test_what_was_not_recorded_fails():
    assert TABLE.told({"kind": "fast"}, 60) is None


@pytest.mark.parametrize("name", ["LAMMPS", "GROMACS", "pw.x"])
def test_every_default_was_recorded_and_a_short_run_is_shorter(name):
    table = tables()[name]
    default = table.space.default()
    assert 0.0 < table.seconds(default, table.low) < table.seconds(default, table.high) < float("inf")


def test_good_is_found_when_the_best_is_good_and_stays_so():
    runs = [run(0, 10.0), run(1, 5.0), run(2, 4.0, Series.short(10)), run(3, 1.0), run(3, 12.0), run(1, 4.0)]
    # Trial 3 was the best by luck after trial 1, and was so no more with its second run: 10 + 5 + 4 + 1 + 12.
    assert found_after(runs, {1}) == pytest.approx(32.0)
    assert found_after(runs, {2}) is None


@pytest.mark.parametrize(("metric", "optimum"), [(SCORE, 2.0), (ERROR, 1.0)])
def test_epochs_are_counted_until_a_value_is_close_to_the_best_of_all(metric, optimum):
    space = Space([Float("rate", 0.1, 0.2, points=2)])
    recorded = Trainings(space, {(0.1,): [1.0, 1.5], (0.2,): [2.0]}, metric, 2)
    assert recorded.optimum == optimum
    worse = optimum * (1.1 if metric is ERROR else 0.9)
    assert epochs_until(recorded, 0.05, [worse, 1.03 * optimum, worse]) == 2
    assert epochs_until(recorded, 0.05, [worse]) == float("inf")


def test_each_seed_begins_at_another_default_that_was_trained_to_the_end():
    recorded = trainings("digits")
    defaults = [with_a_default(recorded, seed).space.default() for seed in range(5)]
    assert len({tuple(one.values()) for one in defaults}) > 1
    assert all(len(recorded.curve(one)) == recorded.most for one in defaults)
