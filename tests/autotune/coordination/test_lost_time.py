"""A session gives up when others cost it too much time: waits, runs that do not count, and runs that take longer."""

import pytest

from autotune.coordination.disturbances import Disturbances, Patience, expected_runs
from autotune.coordination.quiet_machine import QuietMachine, Use
from autotune.errors import CannotRunHereError
from autotune.studyfile import NoiseSection
from tests.autotune.coordination.test_disturbances import Neighbour, in_flight, store_in, taken
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
    ours.check_patience()
    ours.judge(in_flight(tmp_path), taken(0.9, seconds=250.0))
    with pytest.raises(
        CannotRunHereError, match=r"never quiet: other processes cost this session 07:30, .*3 times(.|\n)*ask"
    ):
        ours.check_patience()


def test_what_counts_nevertheless_loses_what_it_took_longer(tmp_path):
    ours = judge(runs=100, again=0.0)
    for _ in range(4):
        ours.judge(in_flight(tmp_path), taken(0.5, seconds=40.0))
    # Three do not count, and the fourth takes twice as long as its quiet time.
    assert ours.patience.lost_s == pytest.approx(3 * 40.0 + 20.0)


def test_a_quiet_machine_costs_nothing_and_a_short_study_may_wait_for_a_minute(tmp_path):
    ours = judge(runs=3)
    for _ in range(9):
        ours.judge(in_flight(tmp_path), taken(0.001, seconds=1.0))
    assert ours.patience_s == 60.0


@pytest.mark.parametrize("mode", ["accept", "refuse"])
def test_where_nothing_is_made_again_there_is_no_patience(mode):
    ours = judge(mode=mode)
    ours.lose(1e9)
    ours.check_patience()


def test_waits_of_a_comparison_end_when_the_study_would_take_too_long(tmp_path):
    manager = managed(Neighbour([]), tmp_path, display=ListDisplay())
    manager.disturbances, waits = judge(runs=1), []
    manager.quiet = QuietMachine((0,), 600.0, lambda _: Use(0.87, "788 python"), waits.append)
    with pytest.raises(CannotRunHereError, match="after 60 s of waiting"):
        manager.wait_until_quiet()
    assert sum(waits) == 60.0


def test_no_run_of_a_trial_starts_when_the_patience_is_over(tmp_path):
    store_in(tmp_path)
    manager = managed(executor := Neighbour([]), tmp_path / "runs")
    manager.disturbances = judge(runs=1)
    planned = manager.prepare(0, in_flight(tmp_path).purpose, "00000")
    manager.disturbances.lose(61.0)
    with pytest.raises(CannotRunHereError, match="never quiet"):
        manager.start(planned)
    assert not executor.launched


def test_a_study_needs_its_trials_and_a_short_verdict():
    study = study_file(budget={"trials": 20}, verdict={"pairs": 8, "rounds": 4, "candidates": 3})
    assert expected_runs(study) == 20 + 4 * 4 + 16
    assert Patience(10, 3.0).left_s == 60.0
