"""Comparisons wait while others use the machine, for a while, and say so."""

import pytest

from autotune.coordination import quiet_machine
from autotune.coordination.disturbances import Disturbances
from autotune.coordination.quiet_machine import QuietMachine, Use, use_by_others
from autotune.errors import PausedError
from autotune.storage.study_store import StudyStore
from autotune.studyfile import NoiseSection
from launchers import process_tree
from tests.support.contests import rounds_of
from tests.support.fakes import SECONDS, ListDisplay, PaperExecutor, definition, small_space, took
from tests.support.hardware_threads import two_cores
from tests.support.managers import managed

BUSY = Use(0.87, "788 python")


def machine(*looks, patience_s=600.0):
    """Return a machine that looks so, at each look, and how long it was waited for."""
    waits, looks = [], iter(looks)
    return QuietMachine((0, 1), patience_s, lambda _: next(looks), waits.append), waits


def test_a_busy_machine_is_waited_for_and_said_once():
    display = ListDisplay()
    here, waits = machine(BUSY, BUSY, BUSY, Use(0.02), Use(0.02))
    here.wait(display, lambda: None)
    here.wait(display, lambda: None)
    assert len(waits) == 3
    assert display.lines == [
        f"waiting for a quiet machine, 10:00 at most (--noise accept: never): {BUSY.words()}",
        "others use little of the machine now: resuming",
    ]


def test_what_a_kernel_does_not_tell_is_not_waited_for():
    here, waits = machine(None)
    here.wait(display := ListDisplay(), lambda: None)
    assert not waits
    assert not display.lines


def test_all_waits_of_a_session_together_take_no_longer_than_its_patience():
    here, waits = machine(*[BUSY] * 4, Use(0.0), *[BUSY] * 99, patience_s=20.0)
    assert here.wait(ListDisplay(), lambda: None) == (8.0, Use(0.0))
    assert here.wait(ListDisplay(), lambda: None) == (12.0, BUSY)
    assert here.wait(ListDisplay(), lambda: None) == (0.0, BUSY)
    assert sum(waits) == 20.0


def test_a_wait_can_be_paused():
    def pause():
        raise PausedError("paused")

    here, _ = machine(BUSY)
    with pytest.raises(PausedError):
        here.wait(ListDisplay(), pause)


def test_the_mode_says_whether_there_is_a_wait():
    assert QuietMachine.of((0,), NoiseSection(), "accept") is None
    assert QuietMachine.of((0,), NoiseSection(wait_s=5.0), "wait").patience_s == 5.0
    assert QuietMachine.of((0,), NoiseSection(wait_s=5.0), "refuse").patience_s == 0.0


def looked_at(monkeypatch, folder, groups=False):
    """Return the use of CPUs 0 and 1: 0 computes for 0.4 s, and 2 during the whole measurement.

    Niced processes use 0 and 1 for 0.5 s; with `groups` the kernel shares the cores between sessions first.
    """
    stats = iter(["cpu0 100 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\n", "cpu0 140 50 0 0\ncpu1 0 50 0 0\ncpu2 50 0 0 0\n"])
    monkeypatch.setattr(quiet_machine, "PROC", str(folder))
    monkeypatch.setattr(quiet_machine.time, "sleep", lambda _: None)
    monkeypatch.setattr(quiet_machine.time, "process_time", lambda: 1.0)
    monkeypatch.setattr(quiet_machine.Path, "read_text", lambda *_, **__: next(stats))
    (folder / "sys" / "kernel").mkdir(parents=True)
    (folder / "sys" / "kernel" / "sched_autogroup_enabled").write_text(f"{groups:d}\n")
    monkeypatch.setattr(quiet_machine, "_busiest", lambda: "788 python")
    return use_by_others((0, 1))


def test_use_is_that_of_the_given_cores_without_nice_processes(monkeypatch, tmp_path):
    monkeypatch.setattr("launchers.cpus.CPUS", str(tmp_path))
    assert looked_at(monkeypatch, tmp_path) == Use(pytest.approx(0.4), "788 python")


def test_nice_processes_count_where_their_niceness_means_nothing_to_runs(monkeypatch, tmp_path):
    monkeypatch.setattr("launchers.cpus.CPUS", str(tmp_path))
    assert looked_at(monkeypatch, tmp_path, groups=True) == Use(1.0, "788 python")


def test_what_computes_on_the_other_hardware_thread_of_a_core_counts(monkeypatch, tmp_path):
    two_cores(tmp_path, monkeypatch)
    assert looked_at(monkeypatch, tmp_path) == Use(pytest.approx((0.4 + 0.5) / 0.5 / 3), "788 python")


@pytest.mark.parametrize(("nice", "named"), [(0, "7"), (5, "")])
def test_the_process_that_uses_most_is_named_unless_it_makes_way(monkeypatch, nice, named):
    ticks = iter([1, 0, 30, 2])  # of two processes, before and after
    fields = lambda _: [b"R", *[b"0"] * 10, b"%d" % next(ticks), b"0", *[b"0"] * 3, b"%d" % nice]  # noqa: E731
    monkeypatch.setattr(process_tree, "_stat", fields)
    monkeypatch.setattr(quiet_machine.os, "listdir", lambda _: ["7", "8", "self"])
    monkeypatch.setattr(quiet_machine.time, "sleep", lambda _: None)
    monkeypatch.setattr(quiet_machine, "PROC", "/nowhere")
    assert quiet_machine._busiest() == named


def test_a_comparison_looks_at_the_machine_after_a_disturbed_run(tmp_path):
    space, display = small_space(), ListDisplay()
    store = StudyStore.create(f"sqlite:///{tmp_path / 'autotune.db'}", "paper", definition(space))
    manager = managed(PaperExecutor(lambda _: took(2.0)), tmp_path / "runs", display=display)
    manager.disturbances = Disturbances(SECONDS, "wait")
    manager.quiet, waits = machine(BUSY, Use(0.0))
    blocks = rounds_of(store, manager)
    assert len(blocks.run_until(6).pairs(0, 1)) == 6
    assert not waits
    manager.disturbances.suspects = True
    blocks.run_until(8)
    assert len(waits) == 1
    assert sum(line.endswith(BUSY.words()) for line in display.lines) == 1
