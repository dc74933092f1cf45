import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.machines.this_machine import read_or_empty, this_machine
from launchers.cpus import one_thread_per_core, parse_cpu_list


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
    # What was measured on one node can be compared, however many there were beside it.
    assert three.identity == one.identity


def test_one_thread_of_each_core_out_of_the_allowed():
    allowed = os.sched_getaffinity(0)
    chosen = one_thread_per_core(allowed)
    assert chosen
    assert set(chosen) <= allowed
    assert one_thread_per_core(chosen) == chosen


def test_a_kernel_file_that_is_missing_or_garbage_is_no_error(tmp_path):
    (tmp_path / "garbage").write_bytes(b"\xff1")
    assert read_or_empty(tmp_path / "garbage") == "\ufffd1"
    assert read_or_empty(tmp_path / "missing") == read_or_empty(tmp_path) == ""
