"""Connections: how long a request may take to arrive, and how many connections strangers may have.

Nothing here needs a whole request: who sends none, or sends it byte by byte, is let go.
"""

import asyncio
import socket
from collections import OrderedDict
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from autotune.service.peers.peer import Peer, PeerFinder
from autotune.service.settings import Limits


class Visitors:
    """The open connections of others than this user; there is room for this user, whatever the others do.

    Who has shown no right token has few connections, all together and each: a new one then ends their oldest.
    """

    def __init__(self, finder: PeerFinder, limits: Limits, descriptors: int) -> None:
        """Leave more than a third of the `descriptors` to this user, the storage and the studies."""
        self._finder = finder
        self.limits = limits
        self._most_strangers = min(limits.strangers, descriptors // 4)
        self._most_trusted = descriptors // 3
        self._strangers: dict[str, OrderedDict[Connection, None]] = {}
        self._trusted: OrderedDict[Connection, None] = OrderedDict()

    def enter(self, connection: "Connection", end: socket.socket) -> Peer:
        """Return whose a new connection is; it may end others."""
        peer = self._finder.peer(end, connection.client, connection.server)  # type: ignore[arg-type]
        if not peer.own:
            self._strangers.setdefault(peer.key, OrderedDict())[connection] = None
            connection.group = peer.key
            while len(self._strangers.get(peer.key, ())) > self.limits.strangers_each:
                self._end_oldest(peer.key)
            while sum(map(len, self._strangers.values())) > self._most_strangers:
                self._end_oldest(max(self._strangers, key=lambda key: len(self._strangers[key])))
        return peer

    def leave(self, connection: "Connection") -> None:
        """Forget a connection that has ended."""
        self._trusted.pop(connection, None)
        group = self._strangers.get(connection.group, OrderedDict())
        group.pop(connection, None)
        if not group:
            self._strangers.pop(connection.group, None)

    def _end_oldest(self, key: str) -> None:
        """End the oldest connection of a group, or count it among the trusted ones."""
        oldest = next(iter(self._strangers[key]))
        self.leave(oldest)
        if not oldest.peer.trusted and not oldest.peer.own:
            oldest.transport.abort()
            return
        self._trusted[oldest] = None
        if len(self._trusted) > self._most_trusted:
            self._trusted.popitem(last=False)[0].transport.abort()


class Connection(H11Protocol):
    """A connection that ends when a request takes too long to arrive, or nobody takes its answer."""

    visitors: ClassVar[Visitors]
    peer: Peer
    group = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  uvicorn's
        """Be made by uvicorn."""
        super().__init__(*args, **kwargs)
        self._awaited: object = None
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self.peer = self.visitors.enter(self, transport.get_extra_info("socket"))
        self.app_state = {**self.app_state, "peer": self.peer}
        self._await("headers", self.visitors.limits.headers_s)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self.visitors.leave(self)
        self._await(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Note that the other end takes no more of an answer for now."""
        super().pause_writing()
        self._unsent = self.transport.get_write_buffer_size()
        self._stall = self.loop.call_later(self.visitors.limits.unread_s, self._check_progress)

    def resume_writing(self) -> None:
        """Note that it does."""
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _look(self) -> None:
        """See what has to arrive next, and until when."""
        state, limits = self.conn.their_state, self.visitors.limits
        if state is h11.SEND_BODY:
            # A body in work has a deadline of its own, which is answered; this one is for a body that nobody reads.
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

    def _check_progress(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent >= self._unsent:
            self.transport.abort()
            return
        self._unsent = unsent
        self._stall = self.loop.call_later(self.visitors.limits.unread_s, self._check_progress)


def connections_of(visitors: Visitors) -> type[Connection]:
    """Return the class of the connections of one service."""

    class Visit(Connection):
        """A connection of this service."""

    Visit.visitors = visitors
    return Visit
