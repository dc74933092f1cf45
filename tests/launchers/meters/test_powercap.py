"""The energy of processors and memory from powercap counters, which wrap around."""

import os

import pytest

from launchers.meters.figures import with_sum
from launchers.meters.powercap import Powercap
from tests.launchers.meters.kernel import Kernel


@pytest.fixture
def kernel(tmp_path):
    found = Kernel(tmp_path)
    # Two packages with their subzones, one of them listed again by another driver, and the whole platform.
    found.zone("intel-rapl:0", "package-0", 5_000_000)
    found.zone("intel-rapl:0:0", "core", 4_000_000)
    found.zone("intel-rapl:0:1", "dram", 1_000_000)
    found.zone("intel-rapl:1", "package-1", 1_000_000)
    found.zone("intel-rapl:2", "psys", 9_000_000)
    found.zone("intel-rapl-mmio:0", "package-0", 5_000_000)
    found.writes("class/powercap/intel-rapl/enabled", 1)
    return found


def used(kernel, *looks):
    """Return the figures of a run of 10 s in which some counters change before each reading."""
    meter = Powercap(kernel.sys)
    meter.begin(0.0)
    for changes in looks:
        for name, energy_uj in changes.items():
            kernel.counts(name, energy_uj)
        meter.sample(5.0)
    return meter.end(10.0)


def test_packages_add_up_without_their_subzones(kernel):
    found = used(kernel, {"intel-rapl:0": 35_000_000, "intel-rapl:0:0": 30_000_000, "intel-rapl:0:1": 3_000_000})
    assert found == {"cpu_energy_j": 30.0, "cpu_mean_power_w": 3.0, "memory_energy_j": 2.0}


def test_counter_wraps_around(kernel):
    kernel.zone("intel-rapl:0", "package-0", 990_000, most_uj=1_000_000)
    looks = [{"intel-rapl:0": 400_000}, {"intel-rapl:0": 800_000}, {"intel-rapl:0": 300_000}]
    assert used(kernel, *looks)["cpu_energy_j"] == pytest.approx(0.41 + 0.4 + 0.5)


@pytest.mark.parametrize("says", ["", "soon", "-1", "1" * 30])
def test_malformed_counter_removes_its_kind(kernel, says):
    kernel.writes("class/powercap/intel-rapl:1/energy_uj", says)
    assert used(kernel, {"intel-rapl:0:1": 3_000_000}).keys() == {"memory_energy_j"}


def test_constant_counters_are_absent(kernel):
    assert used(kernel, {}) == {}


def test_counter_that_disappears_is_absent(kernel):
    meter = Powercap(kernel.sys)
    meter.begin(0.0)
    (kernel.folder / "class/powercap/intel-rapl:1/energy_uj").unlink()
    kernel.counts("intel-rapl:0:1", 3_000_000)
    assert meter.end(1.0).keys() == {"memory_energy_j"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_unreadable_counters_are_not_a_meter(kernel):
    for file in kernel.folder.rglob("energy_uj"):
        file.chmod(0o000)
    with pytest.raises(OSError, match="this user may read"):
        Powercap(kernel.sys)


def test_machine_without_counters_has_no_meter(tmp_path):
    with pytest.raises(OSError, match="no counter of energy"):
        Powercap(str(tmp_path))


def test_total_energy_needs_all_parts():
    cpu, memory, gpu = {"cpu_energy_j": 30.0}, {"memory_energy_j": 2.0}, {"gpu_energy_j": 50.0}
    assert with_sum(cpu | memory, 0)["energy_j"] == 32.0
    assert with_sum(cpu, 0)["energy_j"] == 30.0
    assert with_sum(cpu | memory | gpu, 2)["energy_j"] == 82.0
    assert "energy_j" not in with_sum(cpu | memory, 2)
    assert "energy_j" not in with_sum(memory | gpu, 1)
