"""Workers: the room that each kind of caller has, and the answers that take long, which are made once and kept.

A request holds one of its kind's places while it is worked on, so callers of one kind can use neither all threads nor
all turns of the event loop. What takes more than some 50 ms of a processor is left to one of the kind's two long
workers; the place is free meanwhile.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from autotune.service.callers import CallerKind
from autotune.service.problems import ProblemError

# Together fewer than the threads of Starlette, which are 40.
PLACES = {CallerKind.OWN: 24, CallerKind.TOKEN: 4}
_LONG = 2
_WAITING = 32
_PATIENCE_S = 20.0
_KEPT_BYTES = 64 * 2**20

_T = TypeVar("_T")
_Key = TypeVar("_Key", bound=Hashable)


@dataclass(frozen=True)
class Answer:
    """An answer that can be kept."""

    content: bytes
    media_type: str
    headers: dict[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        """Return the response with this answer."""
        return Response(self.content, media_type=self.media_type, headers=self.headers)


def as_json(value: Any) -> Answer:  # noqa: ANN401  models, also in lists
    """Return an answer in JSON."""
    return Answer(to_json(value, inf_nan_mode="null"), "application/json")


class KeptAnswers:
    """The answers that were asked for last."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        """Keep `most_bytes` of answers."""
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[Hashable, Answer] = OrderedDict()

    def get(self, key: Hashable) -> Answer | None:
        """Return the answer with this key; None if it is not kept."""
        if key in self._kept:
            self._kept.move_to_end(key)
        return self._kept.get(key)

    def keep(self, key: Hashable, answer: Answer) -> None:
        """Keep an answer, and forget those that were not asked for the longest."""
        if key not in self._kept:
            self._kept[key] = answer
            self._bytes += len(answer.content)
        while self._bytes > self._most_bytes:
            self._bytes -= len(self._kept.popitem(last=False)[1].content)


class Workers:
    """The places and the long workers of one kind of caller; for one event loop."""

    def __init__(
        self, kept: KeptAnswers, places: int, waiting: int = _WAITING, patience_s: float = _PATIENCE_S
    ) -> None:
        """Let `waiting` long answers wait for `patience_s`."""
        self.places = asyncio.Semaphore(places)
        self.kept = kept
        self._long = asyncio.Semaphore(_LONG)
        self._waiting = waiting
        self._patience_s = patience_s
        self._made: dict[Hashable, asyncio.Task[Any]] = {}
        self.ended = False

    async def answer(self, key: Hashable, make: Callable[[], Answer]) -> Answer:
        """Return the answer with this key: one that is kept or being made, or what `make` returns in a thread."""
        answer = self.kept.get(key)
        if answer is None:
            answer = await self.work(key, make)
            self.kept.keep(key, answer)
        return answer

    async def work(self, key: Hashable, work: Callable[[], _T]) -> _T:
        """Return the result of long work in a thread. Those who ask with the same key meanwhile share it.

        Raises:
            ProblemError: much other work waits, or takes long.
        """
        task = self._made.get(key)
        if task is None:
            if self.ended:
                raise ProblemError(503, "the service ends", retry_after_s=5)
            if len(self._made) >= _LONG + self._waiting:
                raise ProblemError(503, f"{self._waiting} answers that take long wait already", retry_after_s=5)
            task = self._made[key] = asyncio.create_task(self._in_turn(work))
            task.add_done_callback(lambda done: self._forget(key, done))
        try:
            result: _T = await asyncio.shield(task)
        except asyncio.CancelledError:
            if self.ended:
                raise ProblemError(503, "the service ends", retry_after_s=5) from None
            raise
        return result

    def end(self) -> None:
        """Refuse those who wait for long answers or for a place, since the service ends."""
        self.ended = True
        for task in self._made.values():
            task.cancel()

    def _forget(self, key: Hashable, done: "asyncio.Task[Any]") -> None:
        del self._made[key]
        if not done.cancelled():
            done.exception()  # those who asked may have left

    async def _in_turn(self, work: Callable[[], _T]) -> _T:
        try:
            async with asyncio.timeout(self._patience_s):
                await self._long.acquire()
        except TimeoutError:
            said = f"the answers asked for before take more than {self._patience_s:g} s"
            raise ProblemError(503, said, retry_after_s=5) from None
        try:
            return await _in_thread(work)
        finally:
            self._long.release()


class Place:
    """The place of one request among those of its kind of caller."""

    def __init__(self, workers: Workers) -> None:
        """Hold no place yet."""
        self.workers = workers
        self._held = False

    async def take(self) -> None:
        """Wait for a place."""
        await self.workers.places.acquire()
        self._held = True

    def leave(self) -> None:
        """Give the place to another request, if it is held."""
        if self._held:
            self._held = False
            self.workers.places.release()


def workers_by_kind() -> dict[CallerKind, Workers]:
    """Return the workers of each kind of caller. What one kind has made is kept for all."""
    kept = KeptAnswers()
    return {kind: Workers(kept, places) for kind, places in PLACES.items()}


async def answer_long(request: Request, find_key: Callable[[], _Key], make: Callable[[_Key], Answer]) -> Response:
    """Answer a request with what `make` returns for a key, or with what it returned before for the same key.

    The key must differ by who may see the answer, and change with whatever the answer depends on. What `make` reads
    must not be older than the key, since its answer is kept.
    """
    place: Place = request.scope["state"]["place"]
    key = await run_in_threadpool(find_key)
    place.leave()
    return (await place.workers.answer(key, partial(make, key))).response()


async def work_long(request: Request, work: Callable[[], _T]) -> _T:
    """Return the result of long work that is done for this request alone."""
    place: Place = request.scope["state"]["place"]
    place.leave()
    return await place.workers.work(object(), work)


async def _in_thread(work: Callable[[], _T]) -> _T:
    """Run in a thread of its own, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[_T] = loop.create_future()

    def end(result: _T | None, error: BaseException | None) -> None:
        if ended.cancelled():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as caught:  # noqa: BLE001  whoever waits raises it
            error = caught
        with suppress(RuntimeError):  # the service has ended
            loop.call_soon_threadsafe(end, result, error)

    Thread(target=run, name="long worker", daemon=True).start()
    return await ended
