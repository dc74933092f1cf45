"""The times of ranks in MPI, and the efficiencies computed from them: known cases, and properties that always hold."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.efficiency.times import (
    PREFIX,
    MissingTimesError,
    RankTimes,
    efficiencies,
    group_executions,
    read_times,
    runtime_s,
)

SECOND = 10**9
COUNTS = {"started": 0, "calls": 3, "calls_elsewhere": 0}


def rank(number, ranks, computing_s, mpi_s):
    elapsed_ns, mpi_ns = round((computing_s + mpi_s) * SECOND), round(mpi_s * SECOND)
    return RankTimes(rank=number, ranks=ranks, elapsed_ns=elapsed_ns, mpi_ns=mpi_ns, **COUNTS)


def run(*pairs):
    """Return the ranks of an execution, each with its seconds of computing and in MPI."""
    return [rank(number, len(pairs), *pair) for number, pair in enumerate(pairs)]


def of(*runs):
    found = efficiencies(runs)
    return found.load_balance, found.communication_efficiency, found.parallel_efficiency


def test_known_efficiencies():
    assert of(run((10, 0), (10, 0))) == (1.0, 1.0, 1.0)
    assert of(run((10, 0), (5, 5))) == pytest.approx((0.75, 1.0, 0.75))
    assert of(run((5, 5), (5, 5))) == pytest.approx((1.0, 0.5, 0.5))
    assert of(run((0, 10), (0, 10))) == (1.0, 0.0, 0.0)
    assert of(run((8, 2))) == pytest.approx((1.0, 0.8, 0.8))


def test_executions_one_after_the_other_are_added_up():
    first, second = run((10, 0), (5, 5)), run((5, 5), (5, 5), (5, 5))
    assert of(first, second) == pytest.approx((12.5 / 15, 15 / 20, 12.5 / 20))
    assert group_executions([*first, *second]) == [tuple(first), tuple(second)]
    twice = group_executions([*first, *run((8, 2), (8, 2))])
    assert [len(ranks) for ranks in twice] == [2, 2]
    assert runtime_s(twice) == pytest.approx(20.0)


times = st.tuples(st.integers(0, 10**15), st.integers(1, 10**15))


@given(st.lists(st.lists(times, min_size=1, max_size=8), min_size=1, max_size=4))
def test_efficiencies_are_shares_whose_product_is_that_of_computing(runs):
    found = [
        [
            RankTimes(rank=number, ranks=len(pairs), elapsed_ns=a + b, mpi_ns=b, **COUNTS)
            for number, (a, b) in enumerate(pairs)
        ]
        for pairs in runs
    ]
    balance, communication, parallel = of(*found)
    assert 0.0 <= parallel <= min(balance, communication) + 1e-12
    assert max(balance, communication) <= 1.0
    assert balance >= 1.0 / max(map(len, runs)) - 1e-9
    computing = sum(sum(one.computing_s for one in ranks) / len(ranks) for ranks in found)
    assert parallel * runtime_s(found) == pytest.approx(computing)


@given(st.lists(times, min_size=1, max_size=8), st.randoms())
def test_the_order_of_the_ranks_changes_nothing(pairs, random):
    ranks = run(*((a / SECOND, b / SECOND) for a, b in pairs))
    shuffled = random.sample(ranks, len(ranks))
    assert [sorted(one.rank for one in found) for found in group_executions(shuffled)] == [list(range(len(pairs)))]
    assert of(*group_executions(shuffled)) == of(ranks)


@given(st.data())
def test_a_rank_that_told_nothing_is_missed(data):
    size = data.draw(st.integers(2, 8))
    ranks = run(*[(1, 1)] * size)
    kept = data.draw(st.lists(st.sampled_from(ranks), min_size=1, max_size=size - 1, unique_by=lambda one: one.rank))
    with pytest.raises(MissingTimesError, match=f"{size - len(kept)} of {size} ranks did not write"):
        group_executions(kept)


def test_ranks_that_know_nothing_of_one_another_are_no_programs_one_after_the_other():
    alone = rank(0, 1, 10, 0)
    with pytest.raises(MissingTimesError, match="2 ranks were started, and each found 1"):
        group_executions([alone.model_copy(update={"started": 2})] * 2)
    assert len(group_executions([alone.model_copy(update={"started": 1})] * 2)) == 2


def test_nobody_told_anything():
    with pytest.raises(MissingTimesError, match="no rank wrote how long it was in MPI: the program does not use MPI"):
        group_executions([])


def line(**changes):
    told = {"rank": 0, "ranks": 1, "elapsed_ns": 10, "mpi_ns": 4, **COUNTS}
    return json.dumps(told | changes)


def test_lines_of_several_hosts_and_parts_are_read_and_others_are_not(tmp_path):
    (tmp_path / f"{PREFIX}one").write_text(f"{line(ranks=2)}\nno line\n" + line(rank=1, ranks=2)[:-9])
    (tmp_path / f"{PREFIX}two").write_text(f"{line(rank=1, ranks=2)}\n")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / f"{PREFIX}one").write_text(f"{line(ranks=3)}\n")
    assert sorted((one.rank, one.ranks) for one in read_times(tmp_path)) == [(0, 2), (0, 3), (1, 2)]
    assert read_times(tmp_path)[0].computing_s == pytest.approx(6e-9)
    assert read_times(tmp_path / "elsewhere") == []


IMPOSSIBLE = (
    line(rank=1),
    line(rank=-1),
    line(ranks=0),
    line(elapsed_ns=0),
    line(mpi_ns=11),
    line(started=-1),
    line(calls="2"),
    line(elapsed_ns=float("nan")),
    line(rank=True),
    "[" * 100_000,
    "{}",
    "",
)


@pytest.mark.parametrize("text", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_what_cannot_be_is_no_line(tmp_path, text):
    (tmp_path / f"{PREFIX}host").write_text(text)
    assert read_times(tmp_path) == []


@given(st.binary(max_size=200))
def test_whatever_stands_there_is_read_or_left(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("run")
    (folder / f"{PREFIX}host").write_bytes(content)
    assert all(one.rank < one.ranks for one in read_times(folder))
