"""Long answers: two at a time of each kind of caller, each made once and kept; others keep their places meanwhile."""

import asyncio
import threading
from types import SimpleNamespace

import httpx
import pytest

from autotune.service.callers import CallerKind
from autotune.service.limiter import Limiter
from autotune.service.problems import ProblemError
from autotune.service.settings import Limits
from autotune.service.workers import PLACES, Answer, KeptAnswers, Place, Workers, answer_long, workers_by_kind


class Made:
    """Makes answers when it is let; counts them."""

    def __init__(self):
        self.let = threading.Event()
        self.working = 0
        self.most = 0
        self.made = []
        self._lock = threading.Lock()

    def maker(self, name):
        def make():
            with self._lock:
                self.working += 1
                self.most = max(self.most, self.working)
            assert self.let.wait(30)
            with self._lock:
                self.working -= 1
                self.made.append(name)
            return Answer(name.encode(), "text/plain")

        return make


@pytest.fixture
def made():
    found = Made()
    yield found
    found.let.set()


async def settle(made, working):
    async with asyncio.timeout(30):
        while made.working != working:
            await asyncio.sleep(0.001)


def test_an_answer_is_made_once_for_all_who_ask_for_it_and_kept(made):
    async def scene():
        workers = Workers(KeptAnswers(), 8)
        asking = [asyncio.create_task(workers.answer("a", made.maker("a"))) for _ in range(100)]
        await settle(made, 1)
        made.let.set()
        assert {(await one).content for one in asking} == {b"a"}
        assert (await workers.answer("a", made.maker("a"))).content == b"a"

    asyncio.run(scene())
    assert made.made == ["a"]


def test_two_are_made_at_a_time_few_wait_and_none_for_long(made):
    async def scene():
        workers = Workers(KeptAnswers(), 8, waiting=3, patience_s=0.05)
        asking = [asyncio.create_task(workers.answer(n, made.maker(str(n)))) for n in range(5)]
        await settle(made, 2)
        with pytest.raises(ProblemError, match="3 answers that take long wait already") as refused:
            await workers.answer("more", made.maker("more"))
        assert (refused.value.status, refused.value.headers) == (503, {"Retry-After": "5"})
        for late in asking[2:]:
            with pytest.raises(ProblemError, match=r"asked for before take more than 0\.05 s"):
                await late
        made.let.set()
        for one in asking[:2]:
            await one

    asyncio.run(scene())
    assert (made.most, sorted(made.made)) == (2, ["0", "1"])


def test_each_kind_of_caller_has_workers_and_places_of_its_own(made):
    async def scene():
        by_kind = workers_by_kind()
        assert sum(PLACES.values()) < 40  # the threads of Starlette
        own, others = by_kind[CallerKind.OWN], by_kind[CallerKind.TOKEN]
        asking = [asyncio.create_task(others.answer(n, made.maker("theirs"))) for n in range(20)]
        places = [Place(others) for _ in range(PLACES[CallerKind.TOKEN])]
        for place in places:
            await place.take()
        await settle(made, 2)
        mine = asyncio.create_task(own.answer("mine", lambda: Answer(b"mine", "text/plain")))
        assert (await asyncio.wait_for(mine, 30)).content == b"mine"
        await asyncio.wait_for(Place(own).take(), 30)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Place(others).take(), 0.05)
        made.let.set()
        await asyncio.gather(*asking)

    asyncio.run(scene())


def test_a_request_that_waits_for_a_long_answer_holds_no_place(made):
    async def scene():
        workers = Workers(KeptAnswers(), 1)
        place = Place(workers)
        await place.take()
        request = SimpleNamespace(scope={"state": {"place": place}})
        asking = asyncio.create_task(answer_long(request, lambda: "a", lambda key: made.maker(key)()))
        await settle(made, 1)
        await asyncio.wait_for(Place(workers).take(), 30)
        made.let.set()
        assert (await asking).body == b"a"

    asyncio.run(scene())


def test_those_who_wait_for_a_place_are_refused_when_the_service_ends():
    async def scene():
        workers, begun, done = Workers(KeptAnswers(), 1), asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            begun.set()
            await done.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

        limiter = Limiter(app, Limits(), {CallerKind.OWN: workers})

        async def served(scope, receive, send):
            await limiter({**scope, "state": {"caller": CallerKind.OWN}}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://x") as client:
            first = asyncio.create_task(client.get("/studies"))
            await begun.wait()
            second = asyncio.create_task(client.get("/studies"))
            await asyncio.sleep(0.05)
            workers.end()
            done.set()
            assert [(await one).status_code for one in (first, second)] == [200, 503]
            assert "the service ends" in (await second).json()["detail"]

    asyncio.run(scene())


def test_an_error_is_everybodys_and_is_not_kept():
    def fail():
        raise ProblemError(404, "it has no winner")

    async def scene():
        workers = Workers(KeptAnswers(), 8)
        for _ in range(2):
            asking = [workers.answer("a", fail) for _ in range(3)]
            assert all(isinstance(one, ProblemError) for one in await asyncio.gather(*asking, return_exceptions=True))
        assert (await workers.answer("a", lambda: Answer(b"now", "text/plain"))).content == b"now"

    asyncio.run(scene())


def test_what_was_not_asked_for_the_longest_is_forgotten():
    kept = KeptAnswers(most_bytes=10)
    for key in "ab":
        kept.keep(key, Answer(b"12345", "text/plain"))
    assert kept.get("a") is not None
    kept.keep("c", Answer(b"12345", "text/plain"))
    assert [kept.get(key) is not None for key in "abc"] == [True, False, True]


def test_a_service_that_ends_does_not_wait_for_long_work(made):
    async def scene():
        workers = Workers(KeptAnswers(), 8)
        asking = [asyncio.create_task(workers.answer(n, made.maker("a"))) for n in range(5)]
        await settle(made, 2)
        workers.end()
        for one in [*asking, workers.answer("late", made.maker("late"))]:
            with pytest.raises(ProblemError, match="the service ends"):
                await one

    asyncio.run(scene())
    assert made.made == []
