"""The process that reads the meters of a run, with a kernel made of files."""

import os

import pytest

from launchers.meters.command import CommandMeter
from launchers.meters.meter_process import MeterProcess
from launchers.meters.run_meters import RunMeters
from launchers.process_tree import descendants, start_time
from tests.launchers.jobs import wait_for
from tests.launchers.meters.kernel import Kernel

ALONE = {"environment": {"PATH": "/usr/bin:/bin"}, "gpus": 0, "nodes": 1, "meter": [], "is_part": False}


@pytest.fixture
def kernel(tmp_path):
    found = Kernel(tmp_path)
    found.zone("intel-rapl:0", "package-0", 5_000_000)
    return found


def open_files():
    return {entry.name for entry in os.scandir("/proc/self/fd")}


def test_figures_cover_the_run_from_begin_to_stop(kernel):
    meters = MeterProcess(kernel.sys)
    meters.begin(ALONE)
    kernel.counts("intel-rapl:0", 47_000_000)
    meters.stop()
    found = meters.figures()
    assert found["cpu_energy_j"] == found["energy_j"] == 42.0


def test_meter_process_is_not_a_child_of_the_supervisor(kernel):
    before = descendants(os.getpid())
    meters = MeterProcess(kernel.sys)
    meters.begin(ALONE)
    assert descendants(os.getpid()) == before
    meters.figures()


def test_meter_process_is_not_started_without_a_meter(tmp_path, monkeypatch):
    monkeypatch.setattr("os.fork", lambda: pytest.fail("a process was started"))
    meters = MeterProcess(str(tmp_path))
    meters.begin(ALONE)
    meters.stop()
    assert meters.figures() == {}


def test_failed_fork_gives_no_figures(kernel, monkeypatch):
    def refuse():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("os.fork", refuse)
    meters = MeterProcess(kernel.sys)
    before = open_files()
    meters.begin(ALONE)
    assert meters.figures() == {}
    assert open_files() == before


def test_second_call_of_figures_returns_nothing(kernel):
    meters = MeterProcess(kernel.sys)
    meters.begin(ALONE)
    kernel.counts("intel-rapl:0", 47_000_000)
    assert meters.figures()
    assert meters.figures() == {}


def counting(folder, *joules):
    """Return a command that prints these numbers, one per call."""
    program = folder / "counter"
    numbers = folder / "numbers"
    numbers.write_text("".join(f"{one}\n" for one in joules))
    program.write_text(f"#!/bin/sh\nhead -n 1 {numbers} | sed 's/^/total: /'\nsed -i 1d {numbers}\n")
    program.chmod(0o755)
    return [str(program)]


@pytest.mark.parametrize("nodes", [1, 4])
def test_meter_command_measures_the_whole_job_on_any_nodes(kernel, tmp_path, nodes):
    meters = MeterProcess(kernel.sys)
    meters.begin({**ALONE, "nodes": nodes, "meter": counting(tmp_path, "1000.5 J", "1.2e3 J")})
    kernel.counts("intel-rapl:0", 47_000_000)
    found = meters.figures()
    assert found["energy_j"] == 199.5
    assert found.get("cpu_energy_j") == (42.0 if nodes == 1 else None)


@pytest.mark.parametrize(
    "says",
    [
        ("1000",),
        ("1000", "none"),
        ("1000", "900"),
        ("1000", "1000"),
        ("", "1000"),
        ("1,000.5 J", "1,200 J"),
        ("-7", "-5"),
    ],
)
def test_failed_meter_command_is_not_replaced_by_a_sum(kernel, tmp_path, says):
    meters = MeterProcess(kernel.sys)
    meters.begin({**ALONE, "meter": counting(tmp_path, *says)})
    kernel.counts("intel-rapl:0", 47_000_000)
    assert meters.figures().keys() == {"cpu_energy_j", "cpu_mean_power_w"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2026-11-26 18:20:07 5000", "2026-11-27 00:00:09 5042"),
        ("2026/03/04 12:00:01 5000", "2026/03/05 00:00:09 5042"),
        ("5000 J 26 Nov 2026", "5042 J 27 Nov 2026"),
    ],
)
def test_dates_and_times_are_not_counters(tmp_path, before, after):
    meters = MeterProcess(str(tmp_path))
    meters.begin({**ALONE, "meter": counting(tmp_path, before, after)})
    assert meters.figures() == {"energy_j": 42.0}


def test_part_of_a_job_has_no_meters_of_its_own(kernel, monkeypatch):
    monkeypatch.setattr("os.fork", lambda: pytest.fail("a process was started"))
    meters = MeterProcess(kernel.sys)
    meters.begin({**ALONE, "is_part": True})
    assert meters.figures() == {}


@pytest.mark.slow
def test_hanging_meter_command_is_killed_with_its_children(tmp_path):
    program = tmp_path / "hangs"
    program.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! > {tmp_path}/pid\nwait\n")
    program.chmod(0o755)
    meters = MeterProcess(str(tmp_path))
    meters.begin({**ALONE, "meter": [str(program)]})
    started = int((tmp_path / "pid").read_text())
    wait_for(lambda: start_time(started) is None)
    meters.figures()


def test_slow_command_does_not_extend_other_meters(kernel, monkeypatch):
    now = [0.0]

    def ask(_):
        now[0] += 3.0
        return now[0]

    monkeypatch.setattr(CommandMeter, "_counter", ask)
    meters = RunMeters({**ALONE, "meter": ["slow"]}, kernel.sys, clock=lambda: now[0])
    meters.begin()
    now[0] += 10.0
    kernel.counts("intel-rapl:0", 105_000_000)
    found = meters.end()
    assert (found["cpu_energy_j"], found["cpu_mean_power_w"]) == (100.0, 10.0)


@pytest.mark.parametrize("argv", [["/no/such/program"], ["false"]])
def test_failing_meter_command_does_not_fail_the_run(tmp_path, argv):
    meters = MeterProcess(str(tmp_path))
    meters.begin({**ALONE, "meter": argv})
    assert meters.figures() == {}
