"""A table of decisions as the files of each library: exact texts."""

import json

import pytest

from objectives.base import PlanError
from objectives.decision import Decision
from objectives.mpi.rules.write import write_rules
from tests.docs.page import ROOT

OPEN_MPI_4 = {"mpi_library": "Open MPI", "mpi_version": "4.1.4"}
OPEN_MPI_6 = {"mpi_library": "Open MPI", "mpi_version": "6.0.0"}


def decided(collective, ranks, point, **chosen):
    return Decision({"collective": collective, "ranks": ranks}, point, chosen, {})


def ring(collective, ranks, point):
    return decided(collective, ranks, point, **{f"coll_tuned_{collective}_algorithm": "ring"})


TABLE = [
    decided("allreduce", 2, 8),
    ring("allreduce", 2, 4096),
    ring("allreduce", 2, 32_768),
    decided("allreduce", 2, 1_048_576),
]


def numbers(text):
    return [line.split("#")[0].split() for line in text.splitlines() if line.split("#")[0].strip()]


def test_open_mpi_reads_collectives_ranks_and_sizes():
    ((name, text),) = write_rules(TABLE, OPEN_MPI_4).items()
    assert name == "openmpi-rules.conf"
    # One collective, the second; from no ranks on the library's own decision, from 2 on three rules, from 3 on its own.
    assert numbers(text) == [
        ["1"],
        ["2"],
        ["3"],
        *(["0"], ["1"], ["0", "0", "0", "0"]),
        # The ring where it was measured, from 4 KiB to 32 KiB, and the library beyond.
        *(["2"], ["3"], ["0", "0", "0", "0"], ["4096", "4", "0", "0"], ["32769", "0", "0", "0"]),
        *(["3"], ["1"], ["0", "0", "0", "0"]),
    ]


def test_no_library_reads_rules_of_nonblocking_collectives():
    chosen = {"test_calls": 8, "coll_libnbc_ibcast_algorithm": "chain"}
    with pytest.raises(PlanError, match="blocking collectives"):
        write_rules([decided("ibcast", 2, 4096, **chosen)], OPEN_MPI_4)


def test_no_rule_makes_a_library_use_another_one():
    with pytest.raises(PlanError, match="use another one"):
        write_rules([decided("bcast", 2, 4096, backend="gloo")], OPEN_MPI_4)


def test_a_size_is_that_of_the_whole_buffer_where_open_mpi_takes_it_so():
    (text,) = write_rules([decided("allgather", 4, 8), ring("allgather", 4, 1024)], OPEN_MPI_4).values()
    # A rule for messages of more than 1023 bytes, that is of 4 * 1024; the next is for more than that.
    assert ["4093", "4", "0", "0"] in numbers(text)
    assert ["4097", "0", "0", "0"] in numbers(text)


def test_fan_out_and_segment_size_are_in_the_rule():
    bcast = {"coll_tuned_bcast_algorithm": "chain", "coll_tuned_bcast_algorithm_segmentsize": 16_384}
    fanned = bcast | {"coll_tuned_bcast_algorithm_chain_fanout": 8}
    (text,) = write_rules([decided("bcast", 2, 0, **bcast), decided("bcast", 2, 8, **fanned)], OPEN_MPI_4).values()
    # A fan-out of 0 is refused by the chain: what is not set is 4 in Open MPI.
    assert ["0", "2", "4", "16384"] in numbers(text)
    assert ["1", "2", "8", "16384"] not in numbers(text)
    assert ["8", "2", "8", "16384"] in numbers(text)


def test_a_barrier_has_one_rule():
    barrier = decided("barrier", 2, 0, coll_tuned_barrier_algorithm="tree")
    (text,) = write_rules([barrier], OPEN_MPI_4).values()
    assert numbers(text)[6:9] == [["2"], ["1"], ["0", "6", "0", "0"]]


def test_where_nothing_was_better_there_are_no_rules():
    (text,) = write_rules([decided("allreduce", 2, 8), decided("bcast", 2, 8)], OPEN_MPI_4).values()
    assert numbers(text) == [["0"]]


def test_the_file_that_ships_has_the_algorithms_made_for_two_ranks():
    made = [
        decided(collective, 2, point, **{f"coll_tuned_{collective}_algorithm": "two_proc"})
        for collective, points in (("alltoall", (8, 1_048_576)), ("allgather", (8, 1_048_576)), ("barrier", (0,)))
        for point in points
    ]
    shipped = (ROOT / "studies" / "inputs" / "openmpi-rules.conf").read_text()
    (text,) = write_rules(made, OPEN_MPI_4).values()
    assert shipped.partition("\n")[2] == text


def test_open_mpi_6_reads_json():
    ((name, text),) = write_rules(TABLE, OPEN_MPI_6).items()
    assert name == "openmpi-rules.json"
    (cell,) = json.loads(text)["collectives"]["allreduce"]
    assert (cell["comm_size_min"], cell["comm_size_max"]) == (2, 2)
    assert [(rule["msg_size_min"], rule["msg_size_max"], rule["alg"]) for rule in cell["rules"]] == [
        (4096, 32_768, "ring")
    ]


def test_what_no_rule_can_say_is_refused():
    chosen = {"coll_tuned_bcast_algorithm": "chain", "btl_vader_eager_limit": 65_536}
    with pytest.raises(PlanError, match="cannot set btl_vader_eager_limit"):
        write_rules([decided("bcast", 2, 8, **chosen)], OPEN_MPI_4)
    with pytest.raises(PlanError, match="algorithm 'magic' of bcast is unknown"):
        write_rules([decided("bcast", 2, 8, coll_tuned_bcast_algorithm="magic")], OPEN_MPI_4)
    with pytest.raises(PlanError, match="over = "):
        write_rules([Decision({"ranks": 2}, 8, {}, {})], OPEN_MPI_4)


def test_mpich_is_told_what_holds_at_every_size():
    tree = {"MPIR_CVAR_BCAST_INTRA_ALGORITHM": "tree"}
    same = [decided("bcast", 2, 8, **tree), decided("bcast", 2, 64, **tree), decided("barrier", 2, 0)]
    (text,) = write_rules(same, {"mpi_library": "MPICH"}).values()
    assert text.splitlines()[1:] == ["MPIR_CVAR_BCAST_INTRA_ALGORITHM=tree"]
    (text,) = write_rules([*same, decided("bcast", 4, 8)], {"mpi_library": "MPICH"}).values()
    assert text.splitlines()[1:] == ["# bcast: the best algorithm differs by size or ranks, so the library decides"]


def test_intel_mpi_is_told_sizes_and_ranks():
    found = [
        decided("allreduce", 2, 8),
        *(decided("allreduce", 2, n, I_MPI_ADJUST_ALLREDUCE="ring") for n in (64, 512)),
    ]
    (text,) = write_rules(found, {"mpi_library": "Intel MPI"}).values()
    assert text.splitlines()[1:] == ["I_MPI_ADJUST_ALLREDUCE='8:64-512@2-2'"]
