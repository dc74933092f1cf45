"""Limiter: how long a request may be, and how many requests there may be at once, in work and in all."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autotune.service.callers import CallerKind
from autotune.service.problems import problem
from autotune.service.settings import Limits
from autotune.service.workers import Place, Workers, workers_by_kind

# Requests that wait for something to happen, and use no thread meanwhile.
_WAITING = re.compile(r"GET /events|GET /studies/[^/]+/events|POST /studies/[^/]+/ask")


class Limiter:
    """Refuses requests that are too long, or too many at once."""

    def __init__(self, app: ASGIApp, limits: Limits, workers: Mapping[CallerKind, Workers] | None = None) -> None:
        """Stand before `app`."""
        self._app = app
        self._limits = limits
        self._workers = workers or workers_by_kind()
        self._now: Counter[tuple[CallerKind, bool]] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, or hand it on with its whole body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        kind: CallerKind = scope["state"]["caller"]
        if kind is CallerKind.ANONYMOUS:
            # No body is taken, no thread is used, and there is one request at a time on a connection: the limit of
            # connections is enough.
            await self._app(scope, receive, send)
            return
        follows = _is_waiting(scope)
        refused = self._no_room(kind, follows=follows)
        if refused is not None:
            await refused(scope, receive, send)
            return
        self._now[kind, follows] += 1
        try:
            body = await self._body(scope, receive)
            if isinstance(body, Response):
                await body(scope, receive, send)
                return
            await self._work(scope, _again(body, receive), send, kind)
        finally:
            self._now[kind, follows] -= 1

    async def _work(self, scope: Scope, receive: Receive, send: Send, kind: CallerKind) -> None:
        """Hand a request on when its kind of caller has a place; it is free again before the answer is sent."""
        place = scope["state"]["place"] = Place(self._workers[kind])

        async def send_and_leave(message: Message) -> None:
            place.leave()
            await send(message)

        if not _is_waiting(scope):
            await place.take()
        try:
            if self._workers[kind].ended:
                # A service that ends waits for the requests that it works on, not also for those that wait for a place.
                await problem(503, "the service ends", {"Retry-After": "5"})(scope, receive, send_and_leave)
                return
            await self._app(scope, receive, send_and_leave)
        finally:
            place.leave()

    def _no_room(self, kind: CallerKind, *, follows: bool) -> Response | None:
        most = self._limits.followers if follows else self._limits.at_once
        if self._now[kind, follows] >= most:
            what = "followers and waiting clients" if follows else "requests at once"
            return problem(503, f"there are {most} {what} already", {"Retry-After": "1"})
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """Return the whole body, or the answer that refuses it."""
        limits, headers = self._limits, Headers(scope=scope)
        too_long = f"a body may have {limits.body_bytes} bytes"
        announced = headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > limits.body_bytes:
            return problem(413, too_long, {"Connection": "close"})
        body = bytearray()
        try:
            async with asyncio.timeout(limits.body_s):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > limits.body_bytes:
                        return problem(413, too_long, {"Connection": "close"})
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        break
        except TimeoutError:
            return problem(408, f"the body did not arrive within {limits.body_s:g} s", {"Connection": "close"})
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and kind != "application/json":
            # Browsers let a form of another site send the other kinds without asking this service.
            return problem(415, f"send the body as application/json, not as {kind or 'nothing'}")
        return bytes(body)


def _is_waiting(scope: Scope) -> bool:
    """Return whether a request waits for something to happen."""
    return _WAITING.fullmatch(f"{scope['method']} {scope['path']}") is not None


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was read already, and then what follows it."""
    left = [body]

    async def give() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return give
