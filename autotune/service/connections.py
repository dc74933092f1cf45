"""Connections: how many there may be of each kind of caller, and how long a request may take to arrive."""

import asyncio
import socket
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from autotune.service.callers import CallerKind
from autotune.service.settings import Limits


class OpenConnections:
    """The open connections of a service, by the kind of their caller.

    A connection is anonymous until a request on it shows a right token. If a kind has too many, its oldest is
    closed: new callers get in, however many connections others hold. The user's own connections have no limit.
    """

    def __init__(self, limits: Limits, descriptors: int) -> None:
        """Leave at least a third of the `descriptors` to this user, the storage and the studies."""
        self.limits = limits
        self._most = {
            CallerKind.ANONYMOUS: min(limits.anonymous_connections, descriptors // 4),
            CallerKind.TOKEN: min(limits.token_connections, descriptors // 3),
        }
        # Dictionaries, since they keep the order in which connections came.
        self._open: dict[CallerKind, dict[Connection, None]] = {kind: {} for kind in self._most}

    def move(self, connection: "Connection", kind: CallerKind) -> None:
        """Count a connection as one of a kind of caller; this may close the oldest of that kind."""
        if connection.kind is kind:
            return
        self.remove(connection)
        connection.kind = kind
        if kind in self._open:
            opened = self._open[kind]
            opened[connection] = None
            if len(opened) > self._most[kind]:
                oldest = next(iter(opened))
                del opened[oldest]
                oldest.transport.abort()

    def remove(self, connection: "Connection") -> None:
        """Forget a connection."""
        if connection.kind in self._open:
            self._open[connection.kind].pop(connection, None)


class Connection(H11Protocol):
    """A connection that ends when a request takes too long to arrive."""

    open_connections: ClassVar[OpenConnections]
    kind: CallerKind | None = None
    is_unix = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  uvicorn's
        """Be made by uvicorn."""
        super().__init__(*args, **kwargs)
        self._awaited: object = None
        self._deadline: asyncio.TimerHandle | None = None

    def admit(self, kind: CallerKind) -> None:
        """Count the connection as one of this kind of caller; one that was the user's own stays that."""
        # The caller's token may have been looked up while the connection was closed, which then must not be counted.
        if self.kind is not CallerKind.OWN and not self.transport.is_closing():
            self.open_connections.move(self, kind)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        # The address of the other end does not show it: it is also missing if the other end has closed already.
        self.is_unix = transport.get_extra_info("socket").family == socket.AF_UNIX
        self.open_connections.move(self, CallerKind.ANONYMOUS)
        self.app_state = {**self.app_state, "connection": self}
        self._await("headers", self.open_connections.limits.headers_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.open_connections.remove(self)
        self._await(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._set_deadline()

    def _set_deadline(self) -> None:
        """Set until when the next part of a request has to arrive."""
        state, limits = self.conn.their_state, self.open_connections.limits
        if state is h11.SEND_BODY:
            # The limiter answers when a body is late; this deadline is for a body that no handler reads.
            self._await(("body", self.cycle), limits.body_s + limits.headers_s)
        elif state is h11.IDLE and self.conn.trailing_data[0]:
            self._await(("headers", self.cycle), limits.headers_s)
        else:
            self._await(None)

    def _await(self, what: object, seconds: float = 0.0) -> None:
        if what == self._awaited:
            return
        if self._deadline is not None:
            self._deadline.cancel()
        self._awaited = what
        self._deadline = None if what is None else self.loop.call_later(seconds, self.transport.abort)


def connection_class(of: OpenConnections) -> type[Connection]:
    """Return the class of the connections of one service."""
    return type("ServiceConnection", (Connection,), {"open_connections": of})
