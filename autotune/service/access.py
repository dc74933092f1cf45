"""Access: which requests are let in, and how many. Two layers around the application, before anything is parsed."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autotune.errors import StorageError
from autotune.service.onlooker import READ_ONLY
from autotune.service.peer_user import is_own
from autotune.service.problems import problem
from autotune.service.settings import Limits, Settings
from autotune.service.tokens import TokenBook

_ANYBODY = ("/", "/health")
_PAGE = "/page/"
_CHANGES_NOTHING = frozenset({"GET", "HEAD", "OPTIONS"})
# What is asked with a body, and changes nothing either.
_QUESTIONS = frozenset({"/predict"})
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
# Headers that a proxy adds: then the process at the other end of the connection is not the client.
_PROXIED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
# Those that wait for something to happen, and take no time meanwhile.
_WAITING = ("/events", "/ask")
_ADDRESSES = 4096
_SECURITY = (
    (
        b"content-security-policy",
        (
            b"default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; "
            b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Refusal(NamedTuple):
    """Why a request is not let in."""

    status: int
    detail: str
    headers: dict[str, str]


@dataclass
class Bucket:
    """A token bucket: `burst` requests at once, and `rate_per_s` from then on."""

    rate_per_s: float
    burst: float
    left: float
    seen_at: float

    def take(self, now: float) -> float:
        """Take one; return 0, or how many seconds it is to the next."""
        self.left = min(self.burst, self.left + (now - self.seen_at) * self.rate_per_s)
        self.seen_at = now
        if self.left >= 1.0:
            self.left -= 1.0
            return 0.0
        return (1.0 - self.left) / self.rate_per_s


@dataclass
class Buckets:
    """A bucket for each address; those not heard of for longest are forgotten."""

    rate_per_s: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[str, Bucket] = field(default_factory=OrderedDict)

    def take(self, address: str) -> float:
        """Take one for an address; return 0, or how many seconds it is to the next."""
        now = self.clock()
        bucket = self._known.setdefault(address, Bucket(self.rate_per_s, self.burst, self.burst, now))
        self._known.move_to_end(address)
        while len(self._known) > _ADDRESSES:
            self._known.popitem(last=False)
        return bucket.take(now)


class AccessControl:
    """Lets in this user from this host, and requests with a token; refuses pages of other sites."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Stand before `app`."""
        self._app = app
        self._settings = settings
        self._tokens = TokenBook(settings.tokens)
        self._wrong = Buckets(settings.limits.refused_per_s, 10 * settings.limits.refused_per_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand the request on; every answer says to browsers what it may not be used for."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def safer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_SECURITY, *_cached(scope["path"])]
            await send(message)

        refused = self._refusal(scope)
        if refused is not None:
            await problem(*refused)(scope, receive, safer)
            return
        await self._app(scope, receive, safer)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        local = {*_LOCAL_NAMES, self._settings.host.lower()}
        if self._settings.loopback and host.rpartition(":")[0] not in local and host not in local:
            # A page of another site whose name leads here (DNS rebinding).
            return Refusal(400, f"Host {host!r} is not this service, which is at localhost", {})
        origin = headers.get("origin")
        if (
            origin is not None
            and scope["method"] not in _CHANGES_NOTHING
            and origin.partition("://")[2].lower() != host
        ):
            return Refusal(403, f"a page of {origin} may not change anything here", {})
        if self._settings.read_only and scope["method"] not in _CHANGES_NOTHING and scope["path"] not in _QUESTIONS:
            return Refusal(403, READ_ONLY, {})
        if scope["path"] in _ANYBODY or scope["path"].startswith(_PAGE):
            return None
        return self._stranger(scope, headers)

    def _stranger(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Refuse a request without a token, or with a wrong one; but this user needs none on this host."""
        shown = headers.get("authorization")
        scheme, _, token = (shown or "").partition(" ")
        try:
            owner = self._tokens.owner(token.strip()) if scheme.lower() == "bearer" else None
        except StorageError as error:
            return Refusal(503, str(error), {"Retry-After": "5"})
        if owner is not None:
            scope.setdefault("state", {})["by"] = owner
            return None
        peer, here = scope.get("client"), scope.get("server")
        if shown is None:
            direct = self._settings.loopback and not any(name in headers for name in _PROXIED)
            if direct and peer and here and is_own(tuple(peer), tuple(here)):
                scope.setdefault("state", {})["by"] = "this user"
                return None
            ask = "send a token: Authorization: Bearer TOKEN (its operator makes one with `autotune token NAME`)"
            return Refusal(401, ask, {"WWW-Authenticate": "Bearer"})
        wait_s = self._wrong.take(peer[0] if peer else "")
        if wait_s:
            return Refusal(429, "too many wrong tokens from this address", {"Retry-After": f"{wait_s:.0f}"})
        return Refusal(401, "nobody has this token", {"WWW-Authenticate": 'Bearer error="invalid_token"'})


class Limiter:
    """Keeps requests within the limits: how long, how many, how many at once."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        """Stand before `app`."""
        self._app = app
        self._limits = limits
        self._rates = Buckets(limits.rate_per_s, limits.burst)
        self._now = {False: 0, True: 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand the request on with its whole body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        follows = scope["path"].endswith(_WAITING)
        refused = self._refusal(scope, follows=follows)
        if refused is not None:
            await refused(scope, receive, send)
            return
        self._now[follows] += 1
        try:
            body = await self._body(scope, receive)
            if isinstance(body, Response):
                await body(scope, receive, send)
                return
            await self._app(scope, _again(body, receive), send)
        finally:
            self._now[follows] -= 1

    def _refusal(self, scope: Scope, *, follows: bool) -> Response | None:
        client = scope.get("client")
        wait_s = self._rates.take(client[0] if client else "")
        if wait_s:
            return problem(429, f"more than {self._limits.rate_per_s:g} requests a second", _after(wait_s))
        most = self._limits.followers if follows else self._limits.at_once
        if self._now[follows] >= most:
            what = "followers and waiting clients" if follows else "requests at once"
            return problem(503, f"there are {most} {what} already", _after(1.0))
        return None

    async def _body(self, scope: Scope, receive: Receive) -> bytes | Response:
        """Return the whole body, or why it is not taken."""
        limits, headers = self._limits, Headers(scope=scope)
        too_long = f"a body may have {limits.body_bytes} bytes"
        announced = headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > limits.body_bytes:
            return problem(413, too_long, {"Connection": "close"})
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(limits.body_s):
                while True:
                    message = await receive()
                    parts.append(message.get("body", b""))
                    if sum(map(len, parts)) > limits.body_bytes:
                        return problem(413, too_long, {"Connection": "close"})
                    if message["type"] == "http.disconnect" or not message.get("more_body", False):
                        break
        except TimeoutError:
            return problem(408, f"the body did not arrive within {limits.body_s:g} s", {"Connection": "close"})
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if any(parts) and kind != "application/json":
            # A form of another site can send every other kind without asking.
            return problem(415, f"a body is sent as application/json, not as {kind or 'nothing'}")
        return b"".join(parts)


def _after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, round(seconds)))}


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a way to receive a body that was read already, and then what follows it."""
    left = [body]

    async def give() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return give


def _cached(path: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"cache-control", b"no-cache" if path.startswith(_PAGE) or path == "/" else b"no-store"),)
