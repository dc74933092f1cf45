"""The energy of processors and memory, from a tree of counters that begin anew."""

import os

import pytest

from launchers.meters.figures import with_sum
from launchers.meters.powercap import Powercap
from tests.launchers.meters.kernel import Kernel


@pytest.fixture
def kernel(tmp_path):
    found = Kernel(tmp_path)
    # Two packages with what they hold, one of them once more by another driver, and the whole platform.
    found.zone("intel-rapl:0", "package-0", 5_000_000)
    found.zone("intel-rapl:0:0", "core", 4_000_000)
    found.zone("intel-rapl:0:1", "dram", 1_000_000)
    found.zone("intel-rapl:1", "package-1", 1_000_000)
    found.zone("intel-rapl:2", "psys", 9_000_000)
    found.zone("intel-rapl-mmio:0", "package-0", 5_000_000)
    found.writes("class/powercap/intel-rapl/enabled", 1)
    return found


def used(kernel, *looks):
    """Return the figures of a run of 10 s; before each look some counters change."""
    meter = Powercap(kernel.sys)
    meter.begin(0.0)
    for changes in looks:
        for name, energy_uj in changes.items():
            kernel.counts(name, energy_uj)
        meter.sample(5.0)
    return meter.end(10.0)


def test_packages_add_up_and_what_they_hold_does_not_count_twice(kernel):
    found = used(kernel, {"intel-rapl:0": 35_000_000, "intel-rapl:0:0": 30_000_000, "intel-rapl:0:1": 3_000_000})
    assert found == {"cpu_energy_j": 30.0, "cpu_mean_power_w": 3.0, "memory_energy_j": 2.0}


def test_a_counter_that_begins_anew_goes_on(kernel):
    kernel.zone("intel-rapl:0", "package-0", 990_000, most_uj=1_000_000)
    looks = [{"intel-rapl:0": 400_000}, {"intel-rapl:0": 800_000}, {"intel-rapl:0": 300_000}]
    assert used(kernel, *looks)["cpu_energy_j"] == pytest.approx(0.41 + 0.4 + 0.5)


@pytest.mark.parametrize("says", ["", "soon", "-1", "1" * 30])
def test_a_counter_that_says_no_number_is_absent_with_all_of_its_kind(kernel, says):
    kernel.writes("class/powercap/intel-rapl:1/energy_uj", says)
    assert used(kernel, {"intel-rapl:0:1": 3_000_000}).keys() == {"memory_energy_j"}


def test_counters_that_have_not_moved_tell_nothing(kernel):
    assert used(kernel, {}) == {}


def test_a_counter_that_goes_away_during_the_run_is_absent(kernel):
    meter = Powercap(kernel.sys)
    meter.begin(0.0)
    (kernel.folder / "class/powercap/intel-rapl:1/energy_uj").unlink()
    kernel.counts("intel-rapl:0:1", 3_000_000)
    assert meter.end(1.0).keys() == {"memory_energy_j"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_counters_that_only_root_may_read_are_no_meter(kernel):
    for file in kernel.folder.rglob("energy_uj"):
        file.chmod(0o000)
    with pytest.raises(OSError, match="this user may read"):
        Powercap(kernel.sys)


def test_a_machine_without_counters_has_no_meter(tmp_path):
    with pytest.raises(OSError, match="no counter of energy"):
        Powercap(str(tmp_path))


def test_the_whole_energy_is_known_only_where_all_parts_are():
    cpu, memory, gpu = {"cpu_energy_j": 30.0}, {"memory_energy_j": 2.0}, {"gpu_energy_j": 50.0}
    assert with_sum(cpu | memory, 0)["energy_j"] == 32.0
    assert with_sum(cpu, 0)["energy_j"] == 30.0
    assert with_sum(cpu | memory | gpu, 2)["energy_j"] == 82.0
    assert "energy_j" not in with_sum(cpu | memory, 2)
    assert "energy_j" not in with_sum(memory | gpu, 1)
