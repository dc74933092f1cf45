"""When others cost a session too much time, by waits and by runs that do not count, disturbed runs count."""

import pytest

from autotune.coordination.disturbances import Disturbances, Patience, expected_runs
from autotune.coordination.quiet_machine import QuietMachine, Use
from autotune.errors import CannotRunHereError
from autotune.studyfile import NoiseSection
from tests.autotune.coordination.test_disturbances import Neighbour, in_flight, taken
from tests.support.fakes import SECONDS, ListDisplay, study_file
from tests.support.managers import managed


def judge(runs=10, mode="wait", **section):
    return Disturbances.of(NoiseSection(mode=mode, **section), SECONDS, (), lambda _: None, runs)


def test_a_study_may_lose_twice_its_quiet_time_by_default(tmp_path):
    ours = judge(runs=10)
    ours.judge(in_flight(tmp_path), taken(0.0, seconds=20.0))
    assert ours.patience_s == pytest.approx(400.0)
    ours.judge(in_flight(tmp_path), taken(0.9, seconds=200.0))
    assert ours.patience_s == pytest.approx(200.0, abs=30.0)
    assert ours.judge(in_flight(tmp_path), taken(0.9, seconds=250.0)).disturbed
    # The time is used up: from now on disturbed runs count.
    assert not ours.judge(in_flight(tmp_path), taken(0.9, seconds=250.0)).disturbed


def test_what_counts_nevertheless_loses_what_it_took_longer(tmp_path):
    ours = judge(runs=100, again=0.0)
    for _ in range(4):
        ours.judge(in_flight(tmp_path), taken(0.5, seconds=40.0))
    # Three do not count, and the fourth takes twice as long as its quiet time.
    assert ours.patience.lost_s == pytest.approx(3 * 40.0 + 20.0)


def test_a_quiet_machine_costs_nothing_and_a_short_study_may_wait_for_ten_seconds(tmp_path):
    ours = judge(runs=3)
    for _ in range(9):
        ours.judge(in_flight(tmp_path), taken(0.001, seconds=1.0))
    assert ours.patience_s == 10.0


@pytest.mark.parametrize("mode", ["accept", "refuse"])
def test_where_nothing_is_made_again_there_is_no_patience(mode):
    ours = judge(mode=mode)
    ours.lose(1e9)
    assert ours.patience_s > 1e9


def busy_manager(tmp_path, mode="wait"):
    """Return a manager of runs on a machine that others use all the time, its waits, and the uses that it saw."""
    manager, waits, seen = managed(Neighbour([]), tmp_path, display=ListDisplay()), [], []
    manager.disturbances = judge(runs=1, mode=mode)

    def look(_):
        seen.append(Use(0.87, "788 py"))
        return seen[-1]

    manager.quiet = QuietMachine((0,), 0.0 if mode == "refuse" else 600.0, look, waits.append)
    return manager, waits, seen


def test_a_comparison_goes_on_when_the_study_would_take_too_long(tmp_path):
    manager, waits, seen = busy_manager(tmp_path)
    manager.disturbances.suspects = True
    manager.wait_until_quiet()
    assert sum(waits) == 10.0
    manager.disturbances.suspects = True
    looks = len(seen)
    manager.wait_until_quiet()
    assert sum(waits) == 10.0
    # Each look takes a second, in every run of a comparison.
    assert len(seen) == looks
    assert manager.disturbances.is_busy


def test_no_comparison_waits_after_a_tuning_that_was_disturbed_all_the_time(tmp_path):
    manager, waits, seen = busy_manager(tmp_path)
    for _ in range(9):
        manager.disturbances.judge(in_flight(tmp_path), taken(0.5))
    manager.wait_until_quiet()
    assert not waits
    assert not seen


def test_a_study_that_refuses_disturbed_runs_does_not_begin_on_a_busy_machine(tmp_path):
    manager, waits, _ = busy_manager(tmp_path, mode="refuse")
    with pytest.raises(
        CannotRunHereError, match=r"not quiet: others use 87% of the cores, process 788 py\n.*noise wait"
    ):
        manager.wait_until_quiet()
    assert not waits


def test_a_study_needs_its_trials_and_a_short_verdict():
    study = study_file(budget={"trials": 20}, verdict={"pairs": 8, "rounds": 4, "candidates": 3})
    assert expected_runs(study) == 20 + 4 * 3 + 16
    assert Patience(10, 3.0).left_s == 10.0
