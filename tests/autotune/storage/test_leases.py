from dataclasses import dataclass
from multiprocessing.pool import ThreadPool

import pytest
import sqlalchemy
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from autotune.storage.connection import set_up_alone
from autotune.storage.leases import Lease, MemoryLeaseBook, SqlLeaseBook
from autotune.storage.optuna_storage import connect

HOUR_S = 3600.0
RECORD = {"trial": 3, "series": "", "round": 0, "configuration": {"np": 4, "blas": None, "x": 0.1}}


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


class InMemory:
    """Leases in memory."""

    def __init__(self):
        self._clock = Clock()
        self._first = MemoryLeaseBook("nobody", self._clock)

    def book(self, holder):
        return self._first.seen_by(holder)

    def pass_s(self, seconds):
        self._clock.now_s += seconds


class InStorage:
    """Leases in a storage; time passes when the heartbeats are moved back."""

    def __init__(self, url):
        with set_up_alone(url):
            self.engine = connect(url).engine
            SqlLeaseBook.create_table(self.engine)

    def book(self, holder, study="1-a"):
        return SqlLeaseBook(self.engine, study, holder)

    def pass_s(self, seconds):
        with self.engine.begin() as connection:
            back = sqlalchemy.text("UPDATE autotune_leases SET heartbeat_s = heartbeat_s - :seconds")
            connection.execute(back, {"seconds": seconds})


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def leases(request):
    return InMemory() if request.param == "memory" else InStorage(request.getfixturevalue(request.param))


def test_what_was_taken_is_seen_by_everybody_and_given_up_once(leases):
    one, other = leases.book("one"), leases.book("other")
    assert one.take("b", {})
    assert one.take("a", RECORD)
    assert one.note_job("a", "4711.gadi")
    leases.pass_s(HOUR_S)
    first, second = other.all()
    assert (first.place, first.holder, first.record, first.job_id) == ("a", "one", RECORD, "4711.gadi")
    assert (second.place, second.job_id) == ("b", None)
    assert HOUR_S <= first.age_s < 2 * HOUR_S
    other.release("a")
    assert [lease.place for lease in one.all()] == ["a", "b"]
    one.release("a")
    one.release("a")
    assert [lease.place for lease in other.all()] == ["b"]


@pytest.mark.slow
def test_of_places_that_are_taken_together_one_has_those_that_nobody_else_has(leases):
    one, other = leases.book("one"), leases.book("other")
    assert one.take_all({}) == frozenset()
    assert one.take_all({"a": (RECORD, None), "b": ({}, "4711")}) == {"a", "b"}
    assert other.take_all({"b": ({}, None), "c": ({}, "1")}) == {"c"}
    assert one.take_all({"a": ({}, "2"), "d": ({}, None)}) == {"a", "d"}
    assert [(lease.place, lease.holder, lease.job_id) for lease in one.all()] == [
        ("a", "one", "2"),
        ("b", "one", "4711"),
        ("c", "other", "1"),
        ("d", "one", None),
    ]


def test_a_place_has_one_holder_dead_or_alive(leases):
    one, other = leases.book("one"), leases.book("other")
    assert one.take("a", RECORD)
    assert one.note_job("a", "4711.gadi")
    leases.pass_s(HOUR_S)
    assert not other.take("a", {})
    assert not other.note_job("a", "1")
    assert one.take("a", RECORD | {"round": 1})
    (lease,) = one.all()
    assert (lease.holder, lease.record["round"], lease.job_id) == ("one", 1, None)
    assert lease.age_s < HOUR_S
    assert not one.note_job("elsewhere", "1")


def test_one_of_those_who_try_takes_over_from_the_silent_and_gets_the_job(leases):
    gone, one, other = (leases.book(name) for name in ("gone", "one", "other"))
    gone.take("a", RECORD)
    gone.note_job("a", "4711")
    assert not one.take_over("a", "gone", HOUR_S)
    leases.pass_s(2 * HOUR_S)
    assert not one.take_over("a", "another", HOUR_S)
    assert one.take_over("a", "gone", HOUR_S)
    assert not other.take_over("a", "gone", 0.0)
    (lease,) = other.all()
    assert (lease.holder, lease.job_id, lease.record) == ("one", "4711", RECORD)
    assert lease.age_s < HOUR_S
    # The silent one was only suspended: it is told.
    assert gone.heartbeat() == frozenset()
    assert not gone.note_job("a", "4712")
    gone.release("a")
    assert one.heartbeat() == {"a"}


def test_what_the_dead_left_is_taken_over_though_the_clock_was_put_back(leases):
    gone, one = leases.book("gone"), leases.book("one")
    gone.take("a", RECORD)
    leases.pass_s(-HOUR_S)
    assert not one.take_over("a", "gone", 1.0)
    assert one.take_over("a", "gone", 0.0)
    assert one.heartbeat() == {"a"}


def test_who_gives_a_sign_of_life_keeps_all_of_its_runs(leases):
    one, other = leases.book("one"), leases.book("other")
    for place in ("a", "b"):
        one.take(place, {})
    other.take("c", {})
    leases.pass_s(HOUR_S)
    assert one.heartbeat() == {"a", "b"}
    assert [lease.age_s < HOUR_S for lease in one.all()] == [True, True, False]
    assert not other.take_over("b", "one", HOUR_S)


def test_studies_in_one_storage_keep_their_leases_apart(address):
    storage = InStorage(address)
    one, other = storage.book("me", study="1-a"), storage.book("me", study="2-b")
    assert one.take("a", {"study": 1})
    assert other.take("a", {"study": 2})
    one.release("a")
    assert other.heartbeat() == {"a"}
    assert one.heartbeat() == frozenset()


@pytest.mark.parametrize("way", ["take", "take over"])
def test_of_many_at_once_one_gets_it(address, way):
    storage = InStorage(address)
    names = [f"holder {number}" for number in range(8)]
    places = [f"place {number}" for number in range(5)]
    if way == "take over":
        for place in places:
            storage.book("gone").take(place, RECORD)

    def try_all(name):
        book = storage.book(name)
        if way == "take over":
            return [place for place in places if book.take_over(place, "gone", 0.0)]
        return [place for place in places if book.take(place, {"holder": name})]

    with ThreadPool(len(names)) as pool:
        taken = pool.map(try_all, names)
    assert sorted(place for own in taken for place in own) == places
    held = {lease.place: lease.holder for lease in storage.book("any").all()}
    assert held == {place: name for name, own in zip(names, taken, strict=True) for place in own}


PLACES = st.sampled_from(["a", "b"])
HOLDERS = st.sampled_from(["one", "other"])
AGES_S = st.sampled_from([0.0, 5e3, 1e5])


class Twins(RuleBasedStateMachine):
    """Whatever is done, the book in memory and the one in a storage answer alike."""

    def __init__(self):
        super().__init__()
        engine = sqlalchemy.create_engine("sqlite://")
        SqlLeaseBook.create_table(engine)
        self.sql = InStorage.__new__(InStorage)
        self.sql.engine = engine
        self.memory = InMemory()

    def both(self, holder, call):
        answers = [call(kind.book(holder)) for kind in (self.sql, self.memory)]
        assert answers[0] == answers[1]

    @rule(holder=HOLDERS, place=PLACES, number=st.integers(0, 3))
    def take(self, holder, place, number):
        self.both(holder, lambda book: book.take(place, {"number": number}))

    @rule(holder=HOLDERS, place=PLACES, number=st.integers(0, 3))
    def note_job(self, holder, place, number):
        self.both(holder, lambda book: book.note_job(place, str(number)))

    @rule(holder=HOLDERS, place=PLACES)
    def release(self, holder, place):
        self.both(holder, lambda book: book.release(place))

    @rule(holder=HOLDERS)
    def heartbeat(self, holder):
        self.both(holder, lambda book: book.heartbeat())

    @rule(holder=HOLDERS, gone=HOLDERS, place=PLACES, older_than_s=AGES_S)
    def take_over(self, holder, gone, place, older_than_s):
        self.both(holder, lambda book: book.take_over(place, gone, older_than_s))

    @rule(seconds=st.sampled_from([1e4, 9e4]))
    def wait(self, seconds):
        for kind in (self.sql, self.memory):
            kind.pass_s(seconds)

    @invariant()
    def alike(self):
        def shown(lease: Lease):
            return (lease.place, lease.holder, lease.record, lease.job_id, round(lease.age_s, -4))

        self.both("anybody", lambda book: [shown(lease) for lease in book.all()])

    def teardown(self):
        self.sql.engine.dispose()


Twins.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestTwins = Twins.TestCase
