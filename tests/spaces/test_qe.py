from dataclasses import replace

import numpy as np
import pytest

from spaces import Space
from spaces.qe import QeFacts, constraints, default_lacks_memory, memory_of_node, parameters, rank_counts, rule_facts

DEBIAN = QeFacts(
    cores=2,
    cores_per_node=2,
    kpoints=9,
    planes=18,
    scalapack=True,
    blas=("blis-pthread", "openblas-openmp", "openblas-pthread"),
    threaded_blas=("blis-pthread", "openblas-openmp", "openblas-pthread"),
    transports=("two-copies",),
    allocators=("keep", "huge-pages"),
)
GADI = QeFacts(cores=1536, cores_per_node=48, kpoints=20, planes=96, scalapack=True, threads_by_default=True, sockets=2)


def space_of(facts: QeFacts) -> Space:
    return Space(parameters(facts), constraints(facts), rule_facts(facts))


def test_the_default_is_what_mpirun_np_cores_does():
    assert space_of(DEBIAN).default() == {"np": 2, "npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1}


def test_two_cores_offer_enough_without_padding():
    space = space_of(DEBIAN)
    assert space.size.exact
    assert 100 <= space.size.value <= 400


def test_a_bare_two_core_machine_still_has_a_choice():
    bare = replace(DEBIAN, blas=(), threaded_blas=(), transports=(), allocators=())
    assert space_of(bare).size.value == 10


def test_one_core_has_nothing_to_tune():
    assert space_of(QeFacts(cores=1, cores_per_node=1, kpoints=1)).size.value == 1


@pytest.mark.parametrize(("bands", "squares"), [(None, (1, 4, 9, 16)), (100, (1, 4, 9, 16)), (3, (1, 4, 9)), (1, None)])
def test_no_rank_is_without_a_band(bands, squares):
    facts = QeFacts(cores=16, cores_per_node=16, kpoints=1, scalapack=True, bands=bands)
    found = {parameter.name: parameter.values for parameter in parameters(facts)}
    assert found.get("ndiag") == squares


def test_ranks_fill_one_node_or_whole_nodes():
    one_thread = replace(GADI, threads_by_default=False)
    assert rank_counts(one_thread) == (*range(1, 49), *range(96, 1537, 48))
    assert max(rank_counts(replace(one_thread, max_ranks=100))) == 96


def test_the_competitions_best_is_in_the_space():
    space = space_of(GADI)
    base = {"nbgrp": 1, "ntg": 1, "threads": 1}
    assert space.contains({"np": 1200, "npool": 20, "ndiag": 16, **base})
    assert space.contains({"np": 40, "npool": 20, **base})
    assert not space.contains({"np": 1201, "npool": 1, **base})
    assert not space.contains({"np": 1536, "npool": 1, **base})


def test_ranks_are_bound_only_where_no_other_job_has_the_same_cores():
    base = {"npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1}
    part, whole = {"np": 24, "bind_to": "core", **base}, {"np": 48, "bind_to": "core", **base}
    shared = space_of(replace(GADI, shared_nodes=True))
    assert [space_of(GADI).contains(one) for one in (part, whole)] == [True, True]
    assert [shared.contains(one) for one in (part, whole)] == [False, True]
    assert shared.contains({"np": 24, "bind_to": "none", **base})
    assert shared.contains({"np": 24, **base})


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"np": 44, "npool": 20}, "np % npool == 0"),
        ({"np": 48, "npool": 24}, "npool"),
        ({"np": 48, "npool": 4, "nbgrp": 5}, "np // npool % nbgrp == 0"),
        ({"np": 48, "npool": 4, "ntg": 5}, "np // npool // nbgrp % ntg == 0"),
        ({"np": 48, "npool": 4, "ndiag": 16}, "ndiag <= np // npool // nbgrp"),
        ({"np": 40, "npool": 20, "ndiag": 1}, "np // npool // nbgrp >= 4"),
        ({"np": 960, "npool": 1}, "<= planes"),
        ({"np": 40, "npool": 1, "threads": 3}, "cores_per_node == 0"),
        ({"np": 24, "npool": 1, "threads": 2, "bind_to": "core"}, "bind_to != 'core'"),
        ({"np": 24, "npool": 1, "map_by": "socket", "bind_to": "none"}, "map_by"),
    ],
)
def test_what_is_invalid_says_why(changes, rule):
    broken = space_of(GADI).violations({"np": 48, "npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1, **changes})
    assert broken
    assert any(rule in sentence for sentence in broken)


@pytest.mark.parametrize(
    "changes",
    [{"np": 1, "nbgrp": 2}, {"np": 2, "ntg": 4}, {"np": 48, "nbgrp": 5}, {"np": 40, "ndiag": 49}, {"np": 960}],
)
def test_one_k_point_has_no_pools_but_all_other_rules(changes):
    gamma = space_of(replace(GADI, kpoints=1))
    assert "npool" not in gamma.default()
    assert gamma.violations({"np": 48, "nbgrp": 1, "ntg": 1, "threads": 1, **changes})


def test_with_one_k_point_pw_x_may_choose_task_groups_for_more_ranks_than_planes():
    space = space_of(replace(GADI, kpoints=1, chooses_layout=True))
    assert space.default()["np"] == 1536
    assert not space.contains({**space.default(), "ntg": 1})


GIB = 2**30
LARGE = replace(GADI, node_memory_bytes=192 * GIB, pool_bytes=20 * GIB, shared_bytes=10 * GIB)


@pytest.mark.parametrize(
    ("changes", "gib"),
    [
        ({"np": 48, "npool": 1}, 30),
        ({"np": 48, "npool": 4}, 90),
        ({"np": 48, "npool": 1, "nbgrp": 4}, 120),
        ({"np": 48, "npool": 12}, 250),
        ({"np": 192, "npool": 12}, 62.5),
        ({"np": 96, "npool": 12, "threads": 2}, 62.5),
    ],
)
def test_pools_and_band_groups_on_a_node_have_copies_that_must_fit(changes, gib):
    configuration = {**space_of(LARGE).default(), "nbgrp": 1, **changes}
    assert memory_of_node(LARGE, configuration) == gib * GIB
    lacking = [sentence for sentence in space_of(LARGE).violations(configuration) if sentence.startswith("memory: ")]
    assert bool(lacking) is (gib > 192)


def test_ranks_that_share_the_cores_of_a_node_need_its_memory_all_the_same():
    crowded = replace(LARGE, cores=48, oversubscribe=True, max_ranks=96)
    configuration = {**space_of(crowded).default(), "np": 96, "npool": 12, "nbgrp": 1}
    assert memory_of_node(crowded, configuration) == 250 * GIB
    assert any(sentence.startswith("memory: ") for sentence in space_of(crowded).violations(configuration))


def test_memory_is_no_rule_where_it_cannot_lack_or_where_the_default_lacks_it():
    small = replace(LARGE, pool_bytes=GIB, shared_bytes=GIB)
    assert "memory" not in {constraint.name for constraint in constraints(small)}
    assert not default_lacks_memory(LARGE)
    assert default_lacks_memory(replace(LARGE, pool_bytes=2000 * GIB))
    gamma = replace(LARGE, kpoints=1, cores=48)
    assert not space_of(gamma).contains({"np": 48, "nbgrp": 12, "ntg": 1, "threads": 1})


def test_threads_need_a_library_that_uses_them():
    space = space_of(replace(DEBIAN, blas=("openblas-pthread", "openblas-serial"), threaded_blas=("openblas-pthread",)))
    one = {"np": 1, "npool": 1, "nbgrp": 1, "ntg": 1}
    assert space.contains({**one, "threads": 2, "blas": "openblas-pthread"})
    assert not space.contains({**one, "threads": 2, "blas": "openblas-serial"})
    assert not space.contains({**one, "threads": 2})
    assert space_of(replace(DEBIAN, threads_by_default=True)).contains({**one, "threads": 2})


def test_oversubscription_only_when_asked_for():
    four = {"np": 4, "npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1}
    assert not space_of(DEBIAN).contains(four)
    space = space_of(replace(DEBIAN, oversubscribe=True, max_ranks=4))
    assert space.contains(four)
    assert not space.contains({**four, "bind_to": "core"})
    assert space.default()["np"] == 2


@pytest.mark.parametrize("own", ["david", "cg"])
def test_the_path_is_tuned_only_when_asked_for_and_never_to_what_the_input_says(own):
    facts = replace(DEBIAN, change_path=True, inputs={"diagonalization": own, "mixing_mode": "tf"})
    found = {parameter.name: parameter for parameter in parameters(facts)}
    assert own not in found["diagonalization"].values
    assert found["mixing_mode"].values == ("plain", "local-TF")
    assert "diagonalization" not in {parameter.name for parameter in parameters(DEBIAN)}
    space = space_of(facts)
    davidson = {**space.default(), "diago_david_ndim": 4}
    assert space.contains(davidson) is (own == "david")
    if own == "cg":
        assert space.contains({**davidson, "diagonalization": "david"})
    assert not space.contains({**davidson, "diagonalization": "ppcg"})


def test_every_constraint_has_its_reason():
    for facts in (DEBIAN, GADI, replace(GADI, oversubscribe=True, change_path=True, change_output=True)):
        assert all(constraint.reason for constraint in constraints(facts))
        assert all(parameter.help or parameter.name for parameter in parameters(facts))


@pytest.mark.parametrize("facts", [DEBIAN, GADI, replace(GADI, blas=("a",), threaded_blas=("a",), change_path=True)])
def test_samples_are_valid(facts):
    space = space_of(facts)
    for configuration in space.sample(np.random.default_rng(0), 200):
        assert space.violations(configuration) == []
        assert configuration["np"] * configuration.get("threads", 1) <= facts.cores
