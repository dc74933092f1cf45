"""The energy of processors and memory from the kernel's events, with a fake sysfs and fake counters."""

import time

import pytest

from launchers.meters.available import find_meters
from launchers.meters.perf import Event, Perf, can_count_cpus, find_events, open_counter
from tests.launchers.meters.kernel import Kernel

POWER = "bus/event_source/devices/power"
SCALE = 2.0**-32
SOFTWARE, CPU_CLOCK = 1, 0  # <linux/perf_event.h>: nanoseconds


@pytest.fixture
def kernel(tmp_path):
    """A machine of two packages, as Linux shows an Intel server."""
    found = Kernel(tmp_path)
    found.writes(f"{POWER}/type", 14)
    found.writes(f"{POWER}/cpumask", "0,28")
    for name, code in (("cores", "0x01"), ("pkg", "0x02"), ("ram", "0x03")):
        found.writes(f"{POWER}/events/energy-{name}", f"event={code}")
        found.writes(f"{POWER}/events/energy-{name}.scale", "2.3283064365386962890625e-10")
        found.writes(f"{POWER}/events/energy-{name}.unit", "Joules")
    return found


@pytest.fixture
def proc(tmp_path):
    """Return a function that makes a /proc with these capabilities and this `perf_event_paranoid`."""

    def made(capabilities, paranoid):
        found = Kernel(tmp_path / "proc")
        found.writes("self/status", f"Name:\tpython3\nCapEff:\t{capabilities:016x}\nSeccomp:\t0")
        if paranoid is not None:
            found.writes("sys/kernel/perf_event_paranoid", paranoid)
        return found.sys

    return made


class Counters:
    """Counters of events, by code and CPU."""

    def __init__(self):
        self.counted = {}

    def open(self, type_, code, cpu):
        assert type_ == 14
        self.counted[code, cpu] = 0
        return lambda: self.counted[code, cpu]


def test_events_of_packages_and_memory_are_found(kernel):
    assert find_events(kernel.sys) == {
        "cpu_energy_j": Event(14, 2, (0, 28), SCALE),
        "memory_energy_j": Event(14, 3, (0, 28), SCALE),
    }


def test_packages_add_up(kernel):
    counters = Counters()
    meter = Perf(kernel.sys, counters.open)
    counters.counted |= {(2, 0): 2**32, (2, 28): 2**32, (3, 0): 5}  # before the run
    meter.begin(10.0)
    counters.counted |= {(2, 0): 31 * 2**32, (2, 28): 11 * 2**32, (3, 0): 2**33 + 5}
    assert meter.end(20.0) == {"cpu_energy_j": 40.0, "cpu_mean_power_w": 4.0, "memory_energy_j": 2.0}


def test_constant_counter_is_absent(kernel):
    counters = Counters()
    meter = Perf(kernel.sys, counters.open)
    meter.begin(0.0)
    counters.counted[2, 0] = 2**32
    assert meter.end(1.0).keys() == {"cpu_energy_j", "cpu_mean_power_w"}


@pytest.mark.parametrize(
    ("file", "says"),
    [("energy-ram", "event=0x03,umask=0x1"), ("energy-ram.unit", "Volts"), ("energy-ram.scale", "much")],
)
def test_malformed_event_is_ignored(kernel, file, says):
    kernel.writes(f"{POWER}/events/{file}", says)
    assert find_events(kernel.sys).keys() == {"cpu_energy_j"}


def test_refusing_kernel_has_no_meter(kernel, tmp_path):
    def refuses(*_):
        raise PermissionError(13, "Permission denied")

    with pytest.raises(PermissionError):
        Perf(kernel.sys, refuses)
    with pytest.raises(OSError, match="no event of energy"):
        Perf(str(tmp_path / "none"))


@pytest.mark.parametrize(
    ("capabilities", "paranoid", "may"),
    [(0, 2, False), (0, 0, True), (0, -1, True), (0, None, False), (1 << 38, 4, True), (1 << 21, 4, True)],
)
def test_permission_to_count_whole_cpus(proc, capabilities, paranoid, may):
    assert can_count_cpus(proc(capabilities, paranoid)) is may


def test_finding_names_the_counter_or_the_obstacle(kernel, proc):
    def said(capabilities):
        return str(find_meters(kernel.sys, "no-nvml.so", proc(capabilities, 2))[0])

    assert said(1 << 38) == "energy of processors (powercap, perf): 2 counters by perf_event_open"
    assert "root can allow it with sysctl kernel.perf_event_paranoid=0" in said(0)
    kernel.zone("intel-rapl:0", "package-0", 5_000_000)
    assert said(1 << 38) == "energy of processors (powercap, perf): 1 counter"


def test_real_counter_of_this_kernel_counts():
    try:
        counter = open_counter(SOFTWARE, CPU_CLOCK, 0)
    except OSError as error:
        pytest.skip(f"events of whole CPUs are not to be had here: {error}")
    before = counter()
    time.sleep(0.02)
    assert counter() - before > 10_000_000
