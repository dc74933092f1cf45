"""Halves of the cores are alike, share as little as the machine lets them, and lose none without need."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.execution.halves import CorePlace, Halves, place_of
from launchers import Resources


def machine(*caches, kinds=""):
    """Return where cores are: those of one socket for each list of last-level caches, by their numbers of cores."""
    places = []
    for socket, sizes in enumerate(caches):
        for cache, size in enumerate(sizes):
            places += [(str(socket), f"{socket}", f"{socket}-{cache}", str(len(places) + n)) for n in range(size)]
    kinds = kinds or "p" * len(places)
    found = {cpu: CorePlace(kinds[cpu], within) for cpu, within in enumerate(places)}
    return found, Halves.of(found, found.__getitem__)


@pytest.mark.parametrize(
    ("caches", "first", "second"),
    [
        (((4,), (4,)), (0, 1, 2, 3), (4, 5, 6, 7)),
        (((4, 4),), (0, 1, 2, 3), (4, 5, 6, 7)),
        (((4,),), (0, 2), (1, 3)),
        (((4,), (2,)), (0, 2, 4), (1, 3, 5)),
        (((3, 3, 3),), (0, 1, 2, 6), (3, 4, 5, 7)),
        (((1,),), (), ()),
    ],
)
def test_what_has_a_twin_goes_to_one_half_and_the_rest_is_halved_within(caches, first, second):
    halves = machine(*caches)[1]
    assert tuple(map(sorted, halves.sides)) == (sorted(first), sorted(second))


def test_fast_and_slow_cores_are_shared_out_equally():
    places, halves = machine((6,), kinds="ppssss")
    kinds = [[places[cpu].kind for cpu in side] for side in halves.sides]
    assert kinds[0] == kinds[1]
    assert sorted(kinds[0]) == ["p", "s", "s"]
    # One of each kind has no twin.
    assert machine((2,), kinds="ps")[1].sides == ((), ())


@given(st.lists(st.lists(st.integers(1, 4), min_size=1, max_size=3), min_size=1, max_size=3), st.randoms())
def test_every_core_has_its_like_in_the_other_half(caches, random):
    count = sum(map(sum, caches))
    places, halves = machine(*caches, kinds="".join(random.choice("ps") for _ in range(count)))
    first, second = halves.sides
    assert not set(first) & set(second)
    assert [places[cpu].kind for cpu in first] == [places[cpu].kind for cpu in second]
    shared = [[Counter(places[cpu].within[level] for cpu in side) for side in halves.sides] for level in range(4)]
    assert all(sorted(one.values()) == sorted(other.values()) for one, other in shared)


def test_runs_that_a_half_is_too_small_for_are_told_apart():
    halves = Halves(((0, 1), (2, 3)))
    assert halves.lacks(Resources(2)) == ""
    assert halves.lacks(Resources(3)) == "a run needs 3 cores, and half of this machine's are 2 cores"
    assert halves.lacks(Resources(1, gpus=1)) == "a run uses GPUs"
    assert Halves(why="nobody knows").lacks(Resources(1)) == "nobody knows"
    assert Halves.of([7]).lacks(Resources(1)) == "a run needs 1 core, and half of this machine's are none"
    assert (halves.cores(0, Resources(1)), halves.cores(1, Resources(2))) == ((0,), (2, 3))


def test_where_cores_are_is_read_from_the_kernel(tmp_path):
    cpu = tmp_path / "sys/devices/system/cpu/cpu3"
    for path, text in {
        "topology/physical_package_id": "1",
        "node0/meminfo": "",
        "cache/index0/level": "1",
        "cache/index0/type": "Instruction",
        "cache/index0/shared_cpu_list": "3",
        "cache/index2/level": "2",
        "cache/index2/type": "Unified",
        "cache/index2/shared_cpu_list": "2-3",
        "cache/index3/level": "3",
        "cache/index3/type": "Unified",
        "cache/index3/shared_cpu_list": "0-3",
    }.items():
        (cpu / path).parent.mkdir(parents=True, exist_ok=True)
        (cpu / path).write_text(f"{text}\n")
    assert place_of(3, tmp_path) == CorePlace("", ("1", "node0", "0-3", "2-3"))
    (tmp_path / "sys/devices/cpu_atom").mkdir()
    (tmp_path / "sys/devices/cpu_atom/cpus").write_text("2-3\n")
    assert place_of(3, tmp_path).kind == "cpu_atom"
    assert place_of(9, tmp_path) == CorePlace("", ("", "", "", ""))
