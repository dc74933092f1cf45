"""Access: which requests are let in. The layer around the application that sees a request before it is parsed."""

from functools import partial
from typing import NamedTuple

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from autotune.errors import StorageError
from autotune.service.callers import Caller, CallerKind
from autotune.service.onlooker import READ_ONLY
from autotune.service.peers.peer import Peer, PeerFinder
from autotune.service.problems import problem
from autotune.service.scopes import CHANGES_NOTHING, QUESTIONS, needed
from autotune.service.scopes import Scope as TokenScope
from autotune.service.settings import Settings
from autotune.service.tokens import Grant, TokenBook

_ANYBODY = ("/", "/health")
_PAGE = "/page/"
_LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
# Headers that a proxy adds: then the process at the other end of the connection is not the client.
_PROXIED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_TOKEN_THREADS = 4
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


class AccessControl:
    """Lets in this user from this host, and requests with a token; refuses pages of other sites.

    What takes time to find out is found out in a thread.
    """

    def __init__(self, app: ASGIApp, settings: Settings, finder: PeerFinder) -> None:
        """Stand before `app`."""
        self._app = app
        self._settings = settings
        self._finder = finder
        self._tokens = TokenBook(settings.tokens)
        self._threads: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand the request on; every answer says to browsers what it may not be used for."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There is nothing of any other kind here, so nothing that would ask who it is for.
            msg = f"the service speaks HTTP, not {scope['type']}"
            raise ValueError(msg)

        async def safer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *_SECURITY, *_cached(scope["path"])]
            await send(message)

        headers, state = Headers(scope=scope), scope.setdefault("state", {})
        peer: Peer = state.get("peer") or Peer(scope.get("client"), scope.get("server"))
        caller = self._refusal(scope, headers) or self._anybody(scope, headers, peer)
        if caller is None:
            caller = await self._known(scope, headers, peer)
        if isinstance(caller, Refusal):
            await problem(caller.status, caller.detail, caller.headers)(scope, receive, safer)
            return
        state["caller"] = caller
        await self._app(scope, receive, safer)

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        """Refuse what nobody may ask."""
        host = headers.get("host", "").lower()
        local = {*_LOCAL_NAMES, self._settings.host.lower()}
        if self._settings.loopback and host.rpartition(":")[0] not in local and host not in local:
            # A page of another site whose name leads here (DNS rebinding).
            return Refusal(400, f"Host {host!r} is not this service, which is at localhost", {})
        changes = scope["method"] not in CHANGES_NOTHING
        origin = headers.get("origin")
        if changes and origin is not None and origin.partition("://")[2].lower() != host:
            return Refusal(403, f"a page of {origin} may not change anything here", {})
        if changes and self._settings.read_only and scope["path"] not in QUESTIONS:
            return Refusal(403, READ_ONLY, {})
        return None

    def _anybody(self, scope: Scope, headers: Headers, peer: Peer) -> Caller | Refusal | None:
        """Let in what needs no token: that is looked at only, and has no body that would have to be waited for."""
        if scope["path"] not in _ANYBODY and not scope["path"].startswith(_PAGE):
            return None
        if scope["method"] not in {"GET", "HEAD"}:
            return Refusal(405, f"{scope['method']}: Method Not Allowed", {"Allow": "GET", "Connection": "close"})
        if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            return Refusal(413, f"{scope['path']} takes no body", {"Connection": "close"})
        return Caller(CallerKind.OWN if peer.own and self._direct(headers, peer) else CallerKind.ANYBODY)

    async def _known(self, scope: Scope, headers: Headers, peer: Peer) -> Caller | Refusal:
        """Refuse a request without a token, or with a wrong one; but this user needs none on this host."""
        shown = headers.get("authorization")
        if shown is not None:
            return await self._with_token(scope, shown, peer)
        if self._direct(headers, peer):
            await self._finder.complete(peer)
            if peer.own:
                scope["state"]["by"] = "this user"
                return Caller(CallerKind.OWN)
        ask = "send a token: Authorization: Bearer TOKEN (its operator makes one with `autotune token NAME`)"
        return Refusal(401, ask, {"WWW-Authenticate": "Bearer"})

    async def _with_token(self, scope: Scope, shown: str, peer: Peer) -> Caller | Refusal:
        """Refuse a wrong token, and one that is not for this."""
        scheme, _, token = shown.partition(" ")
        try:
            grant = await self._grant(token.strip()) if scheme.lower() == "bearer" else None
        except StorageError:
            return Refusal(
                503, "the service cannot read its tokens: its operator has to mend them", {"Retry-After": "5"}
            )
        peer.trusted = grant is not None
        if grant is None:
            return Refusal(401, "nobody has this token", {"WWW-Authenticate": 'Bearer error="invalid_token"'})
        need = needed(scope["method"], scope["path"])
        if not grant.scope.allows(need):
            said = f"the token of {grant.owner} is for {grant.scope}; this needs one for {need}"
            return Refusal(403, f"{said} (its operator makes one with `autotune token NAME --scope {need}`)", {})
        scope["state"] |= {"by": grant.owner, "still": partial(self._still, token.strip(), need)}
        return Caller(CallerKind.TOKEN)

    def _direct(self, headers: Headers, peer: Peer) -> bool:
        """Whether the other end of the connection sent the request itself, on this host."""
        if self._settings.always_token:
            return False
        return (self._settings.loopback or peer.unix) and not any(name in headers for name in _PROXIED)

    async def _grant(self, token: str) -> Grant | None:
        """Return whose a token is; their file may have to be read."""
        self._threads = self._threads or CapacityLimiter(_TOKEN_THREADS)
        return await to_thread.run_sync(self._tokens.grant, token, limiter=self._threads)

    async def _still(self, token: str, need: TokenScope) -> bool:
        """Whether a token that was right at the beginning of an answer is right now."""
        try:
            grant = await self._grant(token)
        except StorageError:
            return False
        return grant is not None and grant.scope.allows(need)


def _cached(path: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"cache-control", b"no-cache" if path.startswith(_PAGE) or path == "/" else b"no-store"),)
