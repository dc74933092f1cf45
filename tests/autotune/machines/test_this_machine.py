import os
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.execution.core_pool import CorePool
from autotune.machines import this_machine as this_machine_module
from autotune.machines.this_machine import read_or_empty, this_machine
from launchers import Resources
from launchers.cpus import one_thread_per_core, parse_cpu_list, threads_in_use
from tests.support.descriptors import none_left
from tests.support.hardware_threads import two_cores


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("5\n", {5}), ("", set())])
def test_the_kernels_list_format(text, cpus):
    assert parse_cpu_list(text) == cpus


def test_a_list_of_more_cpus_than_any_machine_has_is_refused_before_it_fills_the_memory():
    with pytest.raises(ValueError, match="beyond"):
        parse_cpu_list("0-999999")


@given(st.sets(st.integers(0, 300), min_size=1))
def test_any_set_of_cpus_can_be_written_and_read(cpus):
    assert parse_cpu_list(",".join(map(str, cpus))) == cpus


def test_no_more_than_what_this_process_may_use():
    machine = this_machine()
    assert set(machine.cpus) <= os.sched_getaffinity(0)
    assert machine.facts["cores"] == len(machine.cpus) >= 1
    assert machine.memory_bytes > 2**28


def test_nodes_of_a_cluster_are_one_machine_with_all_their_cores():
    one = this_machine()
    three = replace(one, nodes=3)
    assert three.facts["cores"] == 3 * one.facts["cores"]
    assert three.facts["nodes"] == 3
    assert three.facts["cores_per_node"] == one.facts["cores_per_node"] == one.cores
    assert str(three).startswith(f"3 nodes like {one.host}, each {one.cores} core")
    # Measurements of a node are comparable whatever the number of nodes in the cluster.
    assert three.identity == one.identity


def test_one_thread_of_each_core_out_of_the_allowed():
    allowed = os.sched_getaffinity(0)
    chosen = one_thread_per_core(allowed)
    assert chosen
    assert set(chosen) <= allowed
    assert one_thread_per_core(chosen) == chosen


@pytest.mark.parametrize(
    ("allowed", "quota", "expected"),
    [
        ({0, 1, 2, 3}, "max 100000", ((0, 1), 2)),
        ({0, 1, 2}, "max 100000", ((0, 1), 1)),
        ({1, 3}, "max 100000", ((1,), 2)),
        ({0, 1, 2, 3}, "300000 100000", ((0, 1), 1)),
        ({0, 1, 2, 3}, "400000 100000", ((0, 1), 2)),
        ({0, 1, 2, 3}, "150000 100000", ((0,), 1)),
    ],
    ids=["all", "one is missing", "one core", "a quota of 3", "a quota of 4", "a quota of less than two"],
)
def test_how_many_hardware_threads_of_each_core_a_run_may_use(allowed, quota, expected, tmp_path, monkeypatch):
    two_cores(tmp_path, monkeypatch, allowed)
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr("autotune.machines.this_machine._CGROUP", tmp_path)
    machine = this_machine.__wrapped__()
    threads = machine.facts["threads_per_core"]
    assert (machine.cpus, threads) == expected
    # Runs in the pool never share a core.
    pool = CorePool(machine.cpus)
    taken = [pool.take(Resources(1, threads_per_core=threads)) for _ in machine.cpus]
    used = [cpu for one in taken for cpu in threads_in_use(one.cpus, one.threads_per_core)]
    assert len(used) == len(set(used)) == machine.cores * threads
    assert set(used) <= allowed


NESTED = "0::/user/job\n"
EARLIER = "4:cpu,cpuacct:/user/job\n3:memory:/user/job\n0::/\n"


@pytest.fixture
def limited(tmp_path, monkeypatch):
    """Return a function that puts this process into control groups with given limits, on a machine with 8 GiB."""
    monkeypatch.setattr(this_machine_module.psutil, "virtual_memory", lambda: SimpleNamespace(total=2**33))
    monkeypatch.setattr(this_machine_module, "_CGROUP", tmp_path)
    monkeypatch.setattr(this_machine_module, "_OWN_GROUPS", tmp_path / "own")

    def put(own, limits):
        (tmp_path / "own").write_text(own)
        for name, limit in limits.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"{limit}\n")

    return put


def cfs(group, quota):
    return {f"{group}/cpu.cfs_quota_us": quota, f"{group}/cpu.cfs_period_us": 100000}


@pytest.mark.parametrize(
    ("own", "limits", "quota"),
    [
        (NESTED, {"user/job/cpu.max": "250000 100000"}, 2.5),
        (NESTED, {"user/cpu.max": "200000 100000", "user/job/cpu.max": "max 100000"}, 2.0),
        (NESTED, {"user/cpu.max": "200000 100000", "user/job/cpu.max": "300000 100000"}, 2.0),
        (NESTED, {"user/cpu.max": "max 100000", "user/other/cpu.max": "100000 100000"}, None),
        ("0::/\n", {"cpu.max": "200000 100000"}, 2.0),
        (NESTED, {"cpu.max": "200000 100000"}, 2.0),
        (EARLIER, cfs("cpu/user/job", 300000), 3.0),
        (EARLIER, cfs("cpu/user", 150000) | cfs("cpu/user/job", -1), 1.5),
        (EARLIER, cfs("cpu", -1) | cfs("cpu/user", -1) | cfs("cpu/user/job", -1), None),
        (EARLIER, cfs("cpu/user", 400000) | cfs("cpu/user/job", 200000), 2.0),
    ],
    ids=[
        *("own", "above", "less above", "none, but for others", "root", "a container's root"),
        *("own, version 1", "above, version 1", "none, version 1", "the least, version 1"),
    ],
)
def test_the_least_quota_of_the_own_control_group_and_those_above_counts(own, limits, quota, limited):
    limited(own, limits)
    assert this_machine_module._cpu_quota() == quota


@pytest.mark.parametrize(
    ("own", "limits", "memory"),
    [
        (NESTED, {"user/job/memory.max": 2**32}, 2**32),
        (NESTED, {"user/memory.max": 2**31, "user/job/memory.max": "max"}, 2**31),
        (NESTED, {"user/memory.max": "max", "user/job/memory.max": 2**40}, 2**33),
        (EARLIER, {"memory/user/job/memory.limit_in_bytes": 2**32}, 2**32),
        (EARLIER, {"memory/user/memory.limit_in_bytes": 2**31, "memory/user/job/memory.limit_in_bytes": 2**32}, 2**31),
        (EARLIER, {"memory/user/job/memory.limit_in_bytes": -1, "memory/memory.limit_in_bytes": 2**63 - 4096}, 2**33),
    ],
    ids=["own", "above", "none", "own, version 1", "less above, version 1", "none, version 1"],
)
def test_the_least_limit_of_memory_of_the_own_control_group_and_those_above_counts(own, limits, memory, limited):
    limited(own, limits)
    assert this_machine_module._memory_bytes() == memory


def arm(**changes):
    told = {"implementer": "0x41", "architecture": "8", "variant": "0x3", "part": "0xd0c", "revision": "1"} | changes
    return "processor\t: 0\nBogoMIPS\t: 50.00\n" + "".join(f"CPU {key}\t: {value}\n" for key, value in told.items())


def model_of(text, monkeypatch):
    monkeypatch.setattr(this_machine_module, "read_if_there", lambda path: text)
    return this_machine_module._cpu_model()


def test_processors_of_arm_are_told_apart_by_their_numbers(monkeypatch):
    others = [arm(part="0xd40"), arm(implementer="0x48"), arm(variant="0x1")]
    models = [model_of(text, monkeypatch) for text in (arm(), *others)]
    assert len(set(models)) == 4
    assert model_of(arm(revision="2"), monkeypatch) == models[0]


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800MHz\n", "POWER9, altivec supported"),
        ("processor\t: 0\ncpu family\t: 6\nmodel name\t: Paper  CPU\n\nmodel name\t: Other\n", "Paper CPU"),
    ],
    ids=["power", "x86"],
)
def test_the_model_of_a_processor_is_what_the_kernel_says_of_the_first(text, model, monkeypatch):
    assert model_of(text, monkeypatch) == model


@pytest.mark.parametrize("name", ["_cpu_model", "_memory_bytes", "_cpu_quota"])
def test_no_part_of_what_tells_machines_apart_is_made_up(name, monkeypatch):
    monkeypatch.setattr(this_machine_module.psutil, "virtual_memory", lambda: SimpleNamespace(total=2**33))
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        getattr(this_machine_module, name)()


def test_hardware_threads_are_not_taken_for_cores_for_want_of_descriptors():
    with none_left(), pytest.raises(OSError, match="Too many open files"):
        one_thread_per_core({0})


def test_a_kernel_file_that_is_missing_or_garbage_is_no_error(tmp_path):
    (tmp_path / "garbage").write_bytes(b"\xff1")
    assert read_or_empty(tmp_path / "garbage") == "\ufffd1"
    assert read_or_empty(tmp_path / "missing") == read_or_empty(tmp_path) == ""
