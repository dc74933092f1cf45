import numpy as np
import pytest

from objectives import registry
from spaces.expressions.quantities import column_of

FACTS = {"kpoints": 10, "bands": 24, "fft_dense_x": 40, "fft_dense_y": 40, "fft_dense_z": 30, "cores_per_node": 48}


def found(**columns):
    count = len(next(iter(columns.values())))
    facts = {name: column_of([value] * count) for name, value in FACTS.items()}
    return registry.quantities("qe")({**facts, **{name: column_of(values) for name, values in columns.items()}})


def test_pools_share_k_points_as_evenly_as_they_can():
    of = found(np=[48, 48, 96], npool=[None, 4, 3])
    assert of["ranks of a pool"].tolist() == [48, 12, 32]
    assert of["k-points of a pool"].tolist() == [10, 3, 4]
    assert of["imbalance of pools"] == pytest.approx([1.0, 1.2, 1.2])
    assert of["nodes used"].tolist() == [1, 1, 2]


def test_ranks_of_a_pool_share_planes():
    of = found(np=[8], npool=[1])
    assert of["planes of a rank"].tolist() == [4]
    assert of["imbalance of planes"] == pytest.approx([32 / 30])
    assert of["work of a rank"].tolist() == [10 * 24 * 4 * 1600]


def test_what_depends_on_unknown_facts_is_left_out():
    of = registry.quantities("qe")({"np": column_of([4, 8]), "npool": column_of([2, 2])})
    assert set(of) == {"cores used", "ranks of a pool", "ranks of a band group"}
    assert not any(np.isnan(column).any() for column in of.values())


def test_other_programs_have_none():
    assert registry.quantities("command") is None


def brute_force(ranks, pools, capacity):
    """The pool on most nodes, by listing the node of each rank."""
    size = ranks // pools
    best = (1, 0.0)
    for pool in range(pools):
        nodes = [rank // capacity for rank in range(pool * size, (pool + 1) * size)]
        alike = sum(a == b for a in nodes for b in nodes)
        best = max(best, (len(set(nodes)), 1.0 - alike / size**2))
    return best


@pytest.mark.parametrize(("ranks", "pools", "nodes"), [(40, 2, 2), (60, 4, 3), (60, 5, 3), (36, 3, 2), (18, 6, 1)])
def test_pools_may_lie_across_nodes(ranks, pools, nodes):
    facts = {"nodes": column_of([nodes]), "cores_per_node": column_of([20])}
    of = registry.quantities("qe")({"np": column_of([ranks]), "npool": column_of([pools]), **facts})
    span, share = brute_force(ranks, pools, 20)
    assert of["nodes of a pool"].tolist() == [span]
    assert of["1 + 10 x share of a pool's pairs of ranks across nodes"] == pytest.approx([1.0 + 10.0 * share])
    assert of["share of the cores that is used"] == pytest.approx([ranks / 20 / nodes])


def test_ranks_that_would_leave_a_node_empty_are_spread():
    of = found(np=[8], npool=[1], nodes=[4])
    assert of["nodes of a pool"].tolist() == [4.0]
