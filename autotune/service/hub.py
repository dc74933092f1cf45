"""Hub: sends news of studies to all followers. It reads the storage once a second, however many followers there are."""

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import StorageError

_TICK_S = 1.0
_LEAST_S = 0.05
_ALIVE_S = 8.0
_ALIVE = b": alive\n\n"
# Reading the storage takes at most this share of the time: a slow storage is read less often.
_SHARE = 0.25

LIST = ""
"""The topic of the list of studies; a study's topic is its name."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class News:
    """An event on a topic, with its data. Equal stamps mean equal news."""

    stamp: str
    event: str
    data: Any

    def encode(self) -> bytes:
        """Return the news as one server-sent event."""
        return f"id: {self.stamp}\nevent: {self.event}\ndata: {json.dumps(self.data)}\n\n".encode()


class TopicFailures:
    """Keeps the failure of one topic from the other topics, and logs it once, since it may last for days."""

    def __init__(self) -> None:
        """Begin without a failure."""
        self._logged: dict[str, str] = {}

    @contextlib.contextmanager
    def contain(self, topic: str) -> Iterator[None]:
        """Catch and log the errors of a topic, which then has no news."""
        try:
            yield
            self._logged.pop(topic, None)
        except StorageError:
            return  # the state of a study that cannot be read says so
        except Exception as error:  # noqa: BLE001  it is logged
            if self._logged.get(topic) != str(error):
                _log.exception("there is no news of %s; trying again", topic or "the list of studies")
            self._logged[topic] = str(error)


MayFollow = Callable[[], Awaitable[bool]]
"""Whether a follower may continue: its token may have been removed."""

ReadNews = Callable[[Mapping[str, str]], Mapping[str, News]]
"""Takes the stamp of the last news of each topic, and returns the news of the topics that have newer ones."""


async def _always() -> bool:
    return True


@dataclass
class _Topic:
    """A topic: its last news, how many there were, and the number of its followers."""

    stamp: str = ""
    last: bytes = b""
    number: int = 0
    followers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def publish(self, news: News) -> None:
        self.stamp, self.last, self.number = news.stamp, news.encode(), self.number + 1
        self.wake()

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Hub:
    """Followers by topic. A slow follower misses replaced news, never the newest."""

    def __init__(self, read_news: ReadNews) -> None:
        """Call `read_news` in a thread for as long as there are followers."""
        self._read_news = read_news
        self._topics: dict[str, _Topic] = {}
        self._arrived = asyncio.Event()
        self._closed = False

    @property
    def followers(self) -> int:
        """The number of followers of all topics together."""
        return sum(topic.followers for topic in self._topics.values())

    async def run(self) -> None:
        """Read and publish news while there are followers."""
        loop = asyncio.get_running_loop()
        trouble = ""
        while True:
            if not self._topics:
                await self._arrived.wait()
            self._arrived.clear()
            begun = loop.time()
            try:
                await self._publish_news()
                trouble = ""
            except Exception as error:  # noqa: BLE001  it is logged
                # The storage may be away for days: the log says so once, and followers get news when it is back.
                if str(error) != trouble:
                    _log.exception("following the studies failed; trying again")
                trouble = str(error)
            pause_s = max(_TICK_S, (loop.time() - begun) * (1.0 / _SHARE - 1.0))
            await asyncio.sleep(_LEAST_S)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), pause_s)

    def close(self) -> None:
        """End the streams of all followers, also of those that come later."""
        self._closed = True
        for topic in self._topics.values():
            topic.wake()

    async def follow(self, topic: str, may_follow: MayFollow = _always) -> AsyncIterator[bytes]:
        """Yield the present state of a topic, then its news, for as long as the follower may follow."""
        if topic not in self._topics:
            self._topics[topic] = _Topic()
            self._arrived.set()
        followed = self._topics[topic]
        followed.followers += 1
        seen = 0
        try:
            while not self._closed:
                changed, said = followed.changed, followed.last
                if followed.number == seen:
                    try:
                        await asyncio.wait_for(changed.wait(), _ALIVE_S)
                        continue
                    except TimeoutError:
                        said = _ALIVE
                seen = followed.number
                if not await may_follow():
                    return
                yield said
        finally:
            followed.followers -= 1
            if not followed.followers and self._topics.get(topic) is followed:
                del self._topics[topic]

    async def _publish_news(self) -> None:
        known = {name: topic.stamp for name, topic in self._topics.items()}
        news = await asyncio.to_thread(self._read_news, known)
        for name, newest in news.items():
            if name in self._topics:
                self._topics[name].publish(newest)
