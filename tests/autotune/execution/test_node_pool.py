"""Which jobs get which cores of a cluster, while its nodes come and go."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import CannotRunHereError
from autotune.execution.node_pool import Node, NodePool, gpus_per_node, overdue
from autotune.execution.task import describe_job, job_from_description
from autotune.records.study import Run
from launchers import Job, Resources
from tests.support.fakes import took

CPUS = (0, 1, 2, 3)


def node(name: str, key: str = "", gpus: int = 0) -> Node:
    return Node(key or f"key-{name}", name, CPUS, gpus)


def test_a_job_has_cores_of_one_node_and_small_ones_are_spread():
    pool = NodePool([node("a"), node("b")])
    first, second = pool.take(Resources(3)), pool.take(Resources(3))
    assert first == Resources(3, cpus=(0, 1, 2), hosts=("a",))
    assert second == Resources(3, cpus=(0, 1, 2), hosts=("b",))
    assert pool.take(Resources(2)) is None
    pool.give_back(first)
    assert pool.take(Resources(2)).hosts == ("a",)


def test_a_job_of_one_node_gets_all_of_it_at_most():
    assert NodePool([node("a"), node("b")]).take(Resources(64)).cpus == CPUS


def test_a_job_of_several_nodes_has_them_whole():
    pool = NodePool([node("a"), node("b"), node("c")])
    small = pool.take(Resources(1))
    both = pool.take(Resources(8, nodes=2))
    assert both == Resources(8, nodes=2, cpus=CPUS, hosts=("b", "c"))
    assert pool.take(Resources(8, nodes=2)) is None
    assert pool.take(Resources(3)).hosts == small.hosts
    pool.give_back(both)
    assert pool.take(Resources(4)).hosts == ("b",)


def test_a_job_with_gpus_goes_where_they_are():
    pool = NodePool([node("a"), node("b", gpus=2)])
    assert pool.take(Resources(1, gpus=1)).hosts == ("b",)
    assert NodePool([node("a", gpus=1)]).take(Resources(1)).hosts == ("a",)


def test_gpus_of_a_node_are_lent_once_and_another_node_has_free_ones():
    pool = NodePool([node("a", gpus=2), node("b", gpus=1)])
    taken = [pool.take(Resources(1, gpus=1)) for _ in range(3)]
    assert sorted(one.hosts for one in taken) == [("a",), ("a",), ("b",)]
    assert pool.take(Resources(1, gpus=1)) is None
    assert pool.take(Resources(1)) is not None
    pool.give_back(next(one for one in taken if one.hosts == ("b",)))
    assert pool.take(Resources(1, gpus=1)).hosts == ("b",)


def test_a_job_of_several_nodes_has_its_share_of_the_gpus_on_each():
    pool = NodePool([node("a", gpus=4), node("b", gpus=2), node("c", gpus=4)])
    wanted = Resources(8, nodes=2, gpus=8)
    assert gpus_per_node(wanted) == 4
    assert pool.take(wanted).hosts == ("a", "c")
    assert pool.take(Resources(8, nodes=2, gpus=2)) is None


def test_a_node_that_is_gone_gets_no_job_and_one_that_is_new_does():
    pool = NodePool([node("a"), node("b")])
    lost = pool.take(Resources(4))
    pool.update([node("b")])
    assert pool.take(Resources(4)).hosts == ("b",)
    assert pool.take(Resources(1)) is None
    pool.give_back(lost)
    assert pool.take(Resources(1)) is None
    pool.update([node("b"), node("c")])
    assert pool.take(Resources(1)).hosts == ("c",)


def test_cores_of_a_node_that_comes_back_are_not_lent_twice():
    pool = NodePool([node("a")])
    lost = pool.take(Resources(3))
    pool.update([])
    pool.update([node("a", key="another")])
    # Nobody has said yet that the job of before has ended.
    assert pool.take(Resources(2)) is None
    again = pool.take(Resources(1))
    assert again.cpus == (3,)
    pool.give_back(lost)
    assert pool.take(Resources(3)).cpus == (0, 1, 2)


@pytest.mark.parametrize(
    ("nodes", "wanted", "said"),
    [
        ([], Resources(1), "a node; .* left: none"),
        ([node("a"), node("b")], Resources(12, nodes=3), "3 nodes; .* left: a, b"),
        ([node("a")], Resources(1, gpus=1), "a node with 1 GPUs; .* left: a"),
    ],
)
def test_what_can_never_be_had_is_an_error_and_no_wait(nodes, wanted, said):
    with pytest.raises(CannotRunHereError, match=said):
        NodePool(nodes).take(wanted)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("take"), st.integers(1, 6), st.integers(1, 2)),
            st.tuples(st.just("give"), st.integers(0, 10), st.just(0)),
            st.tuples(st.just("nodes"), st.sets(st.sampled_from("abc"), min_size=1), st.just(0)),
        ),
        max_size=40,
    )
)
def test_no_core_is_ever_lent_twice_whatever_comes_and_goes(steps):
    pool, held, age = NodePool(map(node, "abc")), [], 0
    for what, amount, nodes in steps:
        if what == "take":
            try:
                taken = pool.take(Resources(amount, nodes=nodes))
            except CannotRunHereError:
                assert not held
                continue
            if taken is not None:
                held.append(taken)
        elif what == "give" and held:
            pool.give_back(held.pop(amount % len(held)))
        elif what == "nodes":
            age += 1
            present = {one.name for one in pool.nodes}
            stay = [one for one in pool.nodes if one.name in amount]
            pool.update([*stay, *(node(name, key=f"{name}{age}") for name in amount - present)])
        lent = [(host, cpu) for one in held for host in one.hosts for cpu in one.cpus]
        assert len(lent) == len(set(lent))


def test_what_nobody_will_report_of():
    running = {"task 1": "a", "task 2": "b", "task 3": "c"}
    assert overdue(running, {}, 100.0) == []
    assert overdue(running, {"a": 90.0, "b": 99.9}, 100.0) == ["task 1"]


def test_a_run_on_record_knows_its_host_and_one_made_again_does_not_want_it(tmp_path):
    job = Job(("true",), tmp_path, resources=Resources(8, nodes=2, cpus=CPUS, hosts=("a", "b")))
    stored = json.loads(json.dumps(describe_job(job)))
    run = Run({}, outcome=took(1.0), job=stored, session={"host": "head"})
    assert run.host == "a"
    assert replace(run, job={}).host == "head"
    assert job_from_description(stored) == replace(job, resources=replace(job.resources, hosts=()))


def test_a_job_that_names_its_host_gets_that_one():
    pool = NodePool([node("a"), node("b")])
    assert pool.take(Resources(3, hosts=("b",))).hosts == ("b",)
    assert pool.take(Resources(3, hosts=("b",))) is None
    assert pool.take(Resources(3, hosts=("a",))).hosts == ("a",)
    gpus = NodePool([node("a"), node("b", gpus=1)])
    assert gpus.take(Resources(1, gpus=1, hosts=("a",))).hosts == ("b",)
    assert gpus.take(Resources(1, hosts=("gone",))) is not None
