"""Jobs that may use several hardware threads of a core; two processors of this machine stand for one core."""

import os

import pytest

from launchers import STDOUT, Job, Resources
from launchers.cpus import fewest_threads, threads_in_use
from launchers.local import LocalLauncher
from launchers.run import run
from tests.launchers.jobs import python
from tests.support.hardware_threads import two_cores

USABLE = sorted(os.sched_getaffinity(0))[:2]
SHOW = "import os; print(*sorted(os.sched_getaffinity(0)))"

one_core = pytest.mark.skipif(len(USABLE) < 2, reason="needs two processors")


@pytest.fixture
def core(tmp_path, monkeypatch):
    for cpu in USABLE:
        topology = tmp_path / "sys" / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(",".join(map(str, USABLE)), encoding="ascii")
    monkeypatch.setattr("launchers.cpus.CPUS", str(tmp_path / "sys"))
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@one_core
@pytest.mark.parametrize("per_core", [1, 2])
def test_job_is_confined_to_its_hardware_threads(core, per_core):
    run(LocalLauncher(), Job(python(SHOW), core, resources=Resources(1, cpus=(USABLE[0],), threads_per_core=per_core)))
    assert (core / STDOUT).read_text().split() == [str(cpu) for cpu in USABLE[:per_core]]


@one_core
def test_each_input_of_a_mix_has_its_own_number_of_hardware_threads(core):
    parts = []
    for per_core in (1, 2):
        folder = core / str(per_core)
        folder.mkdir()
        parts.append(Job(python(SHOW), folder, resources=Resources(1, threads_per_core=per_core), name=str(per_core)))
    whole = Resources(1, cpus=(USABLE[0],), threads_per_core=2)
    run(LocalLauncher(), Job((), core, resources=whole, parts=tuple(parts)))
    shown = [(part.folder / STDOUT).read_text().split() for part in parts]
    assert shown == [[str(USABLE[0])], list(map(str, USABLE))]


def test_hardware_threads_are_grouped_by_core(tmp_path, monkeypatch):
    two_cores(tmp_path, monkeypatch)
    assert threads_in_use((1, 0), 1) == [1, 0]
    assert threads_in_use((0, 1), 2) == [0, 2, 1, 3]
    assert fewest_threads((0, 1), range(4)) == 2
    assert fewest_threads((0, 1), (0, 1, 3)) == 1


def test_no_job_has_a_hardware_thread_that_this_process_may_not_use(tmp_path, monkeypatch):
    two_cores(tmp_path, monkeypatch, (0, 1, 3))
    assert threads_in_use((0, 1), 2) == [0, 1, 3]


def test_core_without_topology_has_one_hardware_thread(tmp_path, monkeypatch):
    monkeypatch.setattr("launchers.cpus.CPUS", str(tmp_path))
    assert threads_in_use((0, 1), 2) == [0, 1]
    assert fewest_threads((0, 1), (0, 1)) == 1
