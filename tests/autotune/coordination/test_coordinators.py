"""Several coordinators of one study, and what the dead leave to the living."""

import os
import subprocess
from pathlib import Path

import pytest

from autotune.coordination.coordinators import SILENT_S, Coordinators, new_coordinator_id
from autotune.storage.leases import MemoryLeaseBook


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def meet(clock):
    """Return a function that makes coordinators of one study, on hosts of their own."""
    first = MemoryLeaseBook("a:1:x", clock)

    def make(holder: str, *, alone: bool = False) -> Coordinators:
        coordinators = Coordinators(first.seen_by(holder), holder, alone, clock)
        coordinators.join()
        return coordinators

    return make


def pass_s(clock, seconds, *heard):
    """Let time pass in which only some coordinators are heard of, every minute."""
    until = clock.now + seconds
    while clock.now < until:
        clock.now = min(until, clock.now + 60.0)
        for coordinators in heard:
            coordinators.look()


def run_of(trial: int, series: str = "") -> dict:
    return {"purpose": {"trial": trial, "series": series}}


def test_each_sees_what_the_others_are_at(meet):
    a, b = meet("a:1:x"), meet("b:1:x")
    assert a.take_all({"00003": run_of(3)})
    assert a.take_all({"verdict-00-0": run_of(2, "verdict")})
    b.look()
    assert (b.others, b.busy) == ({"a:1:x"}, {3})
    assert not b.take_all({"00003": run_of(3)})
    a.look()
    assert (a.others, a.busy) == ({"b:1:x"}, frozenset())


def test_the_folders_of_what_others_have_in_flight_are_known(meet):
    a, b = meet("a:1:x"), meet("b:1:x")
    a.take_all({"00003": run_of(3) | {"job": {"folder": "/runs/00003"}}})
    a.look()
    b.look()
    assert (a.in_flight, b.in_flight) == ({}, {"00003": Path("/runs/00003")})


def test_what_a_silent_one_had_is_taken_over_by_one_of_the_others(meet, clock):
    a, b, c = meet("a:1:x"), meet("b:1:x"), meet("c:1:x")
    a.take_all({"00003": run_of(3)})
    a.note_job("00003", "slurm:7:/x")
    pass_s(clock, SILENT_S - 1.0, b, c)
    assert b.inherit() == []
    pass_s(clock, 2.0, b, c)
    assert b.others == {"c:1:x"}
    (lease,) = b.inherit()
    assert (lease.place, lease.job_id) == ("00003", "slurm:7:/x")
    assert c.inherit() == []
    c.look()
    assert c.busy == {3}


def test_one_place_is_taken_over_alone(meet):
    a, b = meet("a:1:x"), meet("b:1:x")
    a.take_all({"verdict-00-0": run_of(3, "verdict")})
    a.take_all({"verdict-00-1": run_of(0, "verdict")})
    a.leave()
    b.look()
    assert b.inherit("00003") == []
    assert [lease.place for lease in b.inherit("verdict-00-1")] == ["verdict-00-1"]
    assert [lease.place for lease in b.inherit()] == ["verdict-00-0"]


def test_who_leaves_lets_the_others_go_on_at_once(meet):
    a, b = meet("a:1:x"), meet("b:1:x")
    a.take_all({"00003": run_of(3)})
    a.leave()
    b.look()
    assert (b.others, [lease.place for lease in b.inherit()]) == (frozenset(), ["00003"])


def test_who_is_alone_inherits_everything_at_once(meet):
    meet("a:1:x", alone=True).take_all({"00003": run_of(3)})
    after = meet("a:2:x", alone=True)
    assert (after.others, after.busy) == (frozenset(), frozenset())
    assert [lease.place for lease in after.inherit()] == ["00003"]
    assert after.inherit() == []


def test_the_part_of_one_that_is_gone_is_left_to_nobody(meet):
    assert meet("a:1:x", alone=True).play("verdict") is None
    assert meet("a:2:x", alone=True).book.all() == []


def test_a_process_of_this_host_that_ended_is_dead_at_once(meet):
    ended = subprocess.Popen(["true"])
    ended.wait()
    here, own = new_coordinator_id().split(":")[::2]
    dead, alive = meet(f"{here}:{ended.pid}:{own}"), meet(f"{here}:{os.getpid()}:{own}")
    dead.take_all({"00003": run_of(3)})
    alive.look()
    assert (alive.others, [lease.place for lease in alive.inherit()]) == (frozenset(), ["00003"])
    later = meet(f"{here}:{os.getpid()}:{own}2")
    # Nothing is left that says that it was there.
    assert all(dead.holder not in lease.place for lease in later.book.all())


def test_a_process_of_a_container_with_the_same_host_name_is_not_known_by_its_number(meet):
    ended = subprocess.Popen(["true"])
    ended.wait()
    here = new_coordinator_id().split(":")[0]
    elsewhere, alive = meet(f"{here}:{ended.pid}:another"), meet(new_coordinator_id())
    elsewhere.take_all({"00003": run_of(3)})
    alive.look()
    assert (len(alive.others), alive.inherit()) == (1, [])


def test_a_part_is_played_by_one(meet, clock):
    a, b = meet("a:1:x"), meet("b:2:x")
    assert a.play("verdict") is None
    assert a.play("verdict") is None
    assert b.play("verdict") == "process 1 on a"
    pass_s(clock, SILENT_S + 1.0, b)
    assert b.play("verdict") is None
    assert a.play("verdict") == "process 2 on b"


def test_who_could_not_reach_the_storage_for_long_takes_nobody_for_dead_before_they_could_be_heard(meet, clock):
    a, b = meet("a:1:x"), meet("b:1:x")
    b.take_all({"00003": run_of(3)})
    # The server is away, or this machine sleeps: what a asks it last is answered when it is back.
    clock.now = SILENT_S + 60.0
    a.look()
    assert (a.others, a.inherit(), a.play("verdict")) == ({"b:1:x"}, [], None)
    pass_s(clock, 30.0, a, b)
    assert (a.others, a.busy) == ({"b:1:x"}, {3})
    pass_s(clock, SILENT_S + 1.0, a)
    assert [lease.place for lease in a.inherit()] == ["00003"]


def test_who_joins_after_an_outage_takes_nobody_for_dead_before_they_could_be_heard(meet, clock):
    a = meet("a:1:x")
    a.take_all({"00003": run_of(3)})
    clock.now = SILENT_S + 60.0
    b = meet("b:1:x")
    assert (b.others, b.inherit()) == ({"a:1:x"}, [])
    pass_s(clock, SILENT_S + 1.0, b)
    assert [lease.place for lease in b.inherit()] == ["00003"]


def test_who_was_silent_for_hours_is_dead_to_whoever_joins(meet, clock):
    meet("a:1:x").take_all({"00003": run_of(3)})
    clock.now = 3600.0
    assert [lease.place for lease in meet("b:1:x").inherit()] == ["00003"]


def test_who_never_comes_back_from_an_outage_is_dead_after_as_long_again(meet, clock):
    a, b = meet("a:1:x"), meet("b:1:x")
    b.take_all({"00003": run_of(3)})
    clock.now = SILENT_S + 60.0
    a.look()
    pass_s(clock, SILENT_S + 1.0, a)
    assert [lease.place for lease in a.inherit()] == ["00003"]


def test_a_look_is_taken_now_and_then(meet, clock):
    a = meet("a:1:x")
    assert not a.look(when_due=True)
    clock.now = 6.0
    assert a.look(when_due=True)
