"""Access: which requests are let in. The layer around the application that sees a request before it is parsed."""

import hmac
from functools import partial
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autotune.errors import StorageError
from autotune.service.callers import CallerKind
from autotune.service.connections import Connection
from autotune.service.models.budgets import Budget
from autotune.service.problems import problem
from autotune.service.scopes import CHANGES_NOTHING, QUESTIONS, needed_scope
from autotune.service.scopes import Scope as TokenScope
from autotune.service.settings import Settings
from autotune.service.study_manager import READ_ONLY
from autotune.service.tokens import Grant, TokenBook

_PUBLIC = ("/", "/health", "/docs")
_PAGE = "/page/"
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
# Headers that a proxy adds: then the process at the other end of a Unix socket is not the client.
_PROXIED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_STARTS = ("POST", "/studies")
_TOKEN_THREADS = 4
_HOW_TO_GET_IN = (
    "this needs a token (Authorization: Bearer TOKEN): the user who runs the service finds the address with its token "
    "by `autotune serve --url`, and makes tokens for others with `autotune serve token NAME`"
)
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
    """The answer to a request that is not let in."""

    status: int
    detail: str
    headers: dict[str, str]


class AccessControl:
    """Lets in requests with a token and refuses pages of other sites; adds the security headers to every answer."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Stand before `app`."""
        self._app = app
        self._settings = settings
        self._tokens = TokenBook(settings.tokens)
        self._threads: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # The service has no routes of another kind, so none that would check who it is for.
            msg = f"the service speaks HTTP, not {scope['type']}"
            raise ValueError(msg)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_SECURITY, *_cache_headers(scope["path"])]
            await send(message)

        headers, state = Headers(scope=scope), scope.setdefault("state", {})
        connection: Connection | None = state.get("connection")
        is_unix = connection is not None and connection.is_unix
        caller = (
            self._forbidden(scope, headers)
            or self._public(scope, headers)
            or await self._private(scope, headers, is_unix)
        )
        if isinstance(caller, Refusal):
            await problem(caller.status, caller.detail, caller.headers)(scope, receive, send_safely)
            return
        if connection is not None and caller is not CallerKind.ANONYMOUS:
            connection.admit(caller)
        state["caller"] = caller
        await self._app(scope, receive, send_safely)

    def _forbidden(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Refuse another host name, two lengths, a change by another site, and a change of a read-only service."""
        host = headers.get("host", "").lower()
        local = {*_LOCAL_NAMES, self._settings.host.lower()}
        if self._settings.loopback and host.rpartition(":")[0] not in local and host not in local:
            # A page of another site whose name leads here (DNS rebinding).
            return Refusal(400, f"Host {host!r} is not this service, which is at localhost", {})
        if "content-length" in headers and "transfer-encoding" in headers:
            # A proxy may believe the other one, and take a part of the body for a request (RFC 9112, 6.1).
            said = "send Content-Length or Transfer-Encoding, not both"
            return Refusal(400, said, {"Connection": "close"})
        changes = scope["method"] not in CHANGES_NOTHING
        origin = headers.get("origin")
        if changes and origin is not None and origin.partition("://")[2].lower() != host:
            return Refusal(403, f"a page of {origin} may not change anything here", {})
        if changes and self._settings.read_only and scope["path"] not in QUESTIONS:
            return Refusal(403, READ_ONLY, {})
        return None

    def _public(self, scope: Scope, headers: Headers) -> CallerKind | Refusal | None:
        """Let in what needs no token, if it has no body that the service would have to wait for."""
        if scope["path"] not in _PUBLIC and not scope["path"].startswith(_PAGE):
            return None
        if scope["method"] not in {"GET", "HEAD"}:
            return Refusal(405, f"{scope['method']}: Method Not Allowed", {"Allow": "GET", "Connection": "close"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return Refusal(413, f"{scope['path']} takes no body", {"Connection": "close"})
        return CallerKind.ANONYMOUS

    async def _private(self, scope: Scope, headers: Headers, is_unix: bool) -> CallerKind | Refusal:
        """Refuse a request without a right token, unless it came through the Unix socket, which only this user has."""
        shown = headers.get("authorization")
        if shown is None:
            if is_unix and not any(name in headers for name in _PROXIED):
                return self._own(scope)
            return Refusal(401, _HOW_TO_GET_IN, {"WWW-Authenticate": "Bearer"})
        scheme, _, token = shown.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        start = self._settings.start_token
        if start and hmac.compare_digest(token.encode(), start.encode()):
            return self._own(scope)
        return await self._with_token(scope, token)

    def _own(self, scope: Scope) -> CallerKind:
        scope["state"]["by"] = CallerKind.OWN.value
        return CallerKind.OWN

    async def _with_token(self, scope: Scope, token: str) -> CallerKind | Refusal:
        """Refuse a wrong token, and a token whose scope is too small."""
        try:
            grant = await self._grant(token) if token else None
        except StorageError:
            return Refusal(
                503, "the service cannot read its tokens: its operator has to mend them", {"Retry-After": "5"}
            )
        if grant is None:
            wrong = f"this token is wrong, or has expired: {_HOW_TO_GET_IN}"
            return Refusal(401, wrong, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        need = needed_scope(scope["method"], scope["path"])
        if not grant.scope.allows(need):
            said = f"the token of {grant.owner} is for {grant.scope}; this needs one for {need}"
            return Refusal(403, f"{said} (its operator makes one with `autotune serve token NAME --scope {need}`)", {})
        if grant.budget is not None and not _is_within(grant.budget, need, scope):
            may = f"it starts studies, and asks, tells and gives hints in those that begin with {grant.budget.prefix!r}"
            return Refusal(403, f"the token of {grant.owner} has a budget: {may}; it changes nothing else", {})
        scope["state"] |= {
            "by": grant.owner,
            "budget": grant.budget,
            "may_follow": partial(self._is_allowed, token, need),
        }
        return CallerKind.TOKEN

    async def _grant(self, token: str) -> Grant | None:
        """Look a token up in a thread: the file of tokens may have to be read."""
        self._threads = self._threads or CapacityLimiter(_TOKEN_THREADS)
        return await to_thread.run_sync(self._tokens.grant, token, limiter=self._threads)

    async def _is_allowed(self, token: str, need: TokenScope) -> bool:
        """Return whether a token, which was right when an answer began, still is."""
        try:
            grant = await self._grant(token)
        except StorageError:
            return False
        return grant is not None and grant.scope.allows(need)


def _is_within(budget: Budget, need: TokenScope, scope: Scope) -> bool:
    """Return whether a budget allows a request that needs `need`."""
    if need is TokenScope.OPERATE:
        return (scope["method"], scope["path"]) == _STARTS
    return need is TokenScope.LOOK or scope["path"].startswith(f"/studies/{budget.prefix}")


def _cache_headers(path: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"cache-control", b"no-cache" if path.startswith(_PAGE) or path == "/" else b"no-store"),)
