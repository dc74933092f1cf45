import numpy as np
import pytest

from objectives import registry
from spaces.quantities import column_of

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
