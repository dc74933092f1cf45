"""The hub: what its followers are told, in a loop whose time is quick, and over a look that the test controls."""

import asyncio
import json
import logging
from contextlib import asynccontextmanager, suppress

import pytest

from autotune.service import hub as hubs
from autotune.service.hub import LIST, Hub, News


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(hubs, "_TICK_S", 0.005)
    monkeypatch.setattr(hubs, "_LEAST_S", 0.001)


class Desk:
    """What there is to tell, by topic; looks are counted, and fail while `broken`."""

    def __init__(self):
        self.there = {}
        self.looks = 0
        self.asked = []
        self.broken = None

    def put(self, topic, number):
        self.there[topic] = number

    def __call__(self, told):
        self.looks += 1
        self.asked.append(dict(told))
        if self.broken is not None:
            raise self.broken
        found = {}
        for topic, stamp in told.items():
            number = self.there.get(topic)
            if str(number) != stamp:
                event = "gone" if number is None else "study"
                found[topic] = News(str(number), event, {"number": number})
        return found


@asynccontextmanager
async def running(desk):
    hub = Hub(desk)
    task = asyncio.create_task(hub.run())
    try:
        yield hub
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def news(stream):
    """Return the next event and its number; what only keeps the connection alive is passed over."""
    while True:
        text = (await asyncio.wait_for(anext(stream), 30)).decode()
        if not text.startswith(":"):
            lines = dict(line.split(": ", 1) for line in text.strip().splitlines())
            assert text.endswith("\n\n")
            assert lines["id"] == str(json.loads(lines["data"])["number"])
            return lines["event"], json.loads(lines["data"])["number"]


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.001)


def scene(play):
    asyncio.run(play())


def test_the_present_state_comes_first_and_then_every_change():
    async def play():
        desk = Desk()
        desk.put("a", 1)
        async with running(desk) as hub:
            stream = hub.follow("a")
            assert await news(stream) == ("study", 1)
            desk.put("a", 2)
            assert await news(stream) == ("study", 2)
            # Who comes later is told how it stands, without another look.
            assert await news(hub.follow("a")) == ("study", 2)
            del desk.there["a"]
            assert await news(stream) == ("gone", None)

    scene(play)


def test_who_is_slow_misses_what_was_overtaken_and_gets_the_newest():
    async def play():
        desk = Desk()
        desk.put("a", 1)
        async with running(desk) as hub:
            slow, quick_one = hub.follow("a"), hub.follow("a")
            assert await news(slow) == ("study", 1)
            assert await news(quick_one) == ("study", 1)
            for number in (2, 3, 4):
                desk.put("a", number)
                assert await news(quick_one) == ("study", number)
            assert await news(slow) == ("study", 4)

    scene(play)


def test_the_same_news_is_told_once_and_the_stamp_of_the_last_is_asked_with():
    async def play():
        desk = Desk()
        desk.put("a", 1)
        async with running(desk) as hub:
            stream = hub.follow("a")
            await news(stream)
            looks = desk.looks
            await until(lambda: desk.looks > looks + 3)
            assert desk.asked[-1] == {"a": "1"}
            waiting = asyncio.ensure_future(anext(stream))
            await until(lambda: desk.looks > looks + 6)
            assert not waiting.done()
            desk.put("a", 2)
            assert b"id: 2" in await asyncio.wait_for(waiting, 30)

    scene(play)


def test_topics_are_told_apart_and_nobody_looks_when_nobody_follows():
    async def play():
        desk = Desk()
        desk.put("a", 1)
        desk.put(LIST, 7)
        async with running(desk) as hub:
            await asyncio.sleep(0.02)
            assert desk.looks == 0
            one, everything = hub.follow("a"), hub.follow(LIST)
            assert (await news(one), await news(everything)) == (("study", 1), ("study", 7))
            assert hub.followers == 2
            await one.aclose()
            await until(lambda: desk.asked[-1] == {LIST: "7"})
            await everything.aclose()
            assert hub.followers == 0
            await asyncio.sleep(0.02)
            looks = desk.looks
            await asyncio.sleep(0.05)
            assert desk.looks == looks
            # And somebody who then comes is not told what was true long ago.
            desk.put("a", 2)
            assert await news(hub.follow("a")) == ("study", 2)

    scene(play)


def test_a_look_that_fails_is_tried_again_and_said_once(caplog):
    async def play():
        desk = Desk()
        desk.put("a", 1)
        async with running(desk) as hub:
            stream = hub.follow("a")
            await news(stream)
            desk.broken = OSError("the storage is away")
            looks = desk.looks
            await until(lambda: desk.looks > looks + 5)
            desk.put("a", 2)
            desk.broken = None
            assert await news(stream) == ("study", 2)

    with caplog.at_level(logging.ERROR):
        scene(play)
    assert len(caplog.records) == 1
    assert "the storage is away" in caplog.text


def test_who_waits_long_is_told_that_the_service_is_there(monkeypatch):
    async def play():
        desk = Desk()
        desk.put("a", 1)
        async with running(desk) as hub:
            stream = hub.follow("a")
            await news(stream)
            # Only now: on a busy machine the news takes longer than that.
            monkeypatch.setattr(hubs, "_ALIVE_S", 0.01)
            assert await asyncio.wait_for(anext(stream), 30) == b": alive\n\n"

    scene(play)


def test_who_may_not_follow_any_more_gets_no_further_event():
    async def scene():
        desk, allowed = Desk(), [True]
        desk.put("a", 1)

        async def still():
            return allowed[0]

        async with running(desk) as hub:
            stream = hub.follow("a", still)
            assert await news(stream) == ("study", 1)
            allowed[0] = False
            desk.put("a", 2)
            with pytest.raises(StopAsyncIteration):
                await anext(stream)
            assert hub.followers == 0

    asyncio.run(scene())
