"""Server: uvicorn, which waits for answers to end; answers that would never end are ended first."""

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import uvicorn
from fastapi import FastAPI

from autotune.service.connections import OpenConnections, connection_class

_LOOK_S = 0.1
# Longer than clients and proxies keep a connection without use (often 60 s): else a request may meet its closing.
_IDLE_S = 75
# How long the answers that are being sent may take when the service ends.
_PATIENCE_S = 2
# So many connections are taken before those that there are get a turn again.
_TAKEN_AT_ONCE = 32
# So many wait in the kernel for that.
_BACKLOG = 4096
# More are of no use here, and some programs go through all that they may have.
_MOST_DESCRIPTORS = 65_536


def _says_more(record: logging.LogRecord) -> bool:
    """Whether a message of uvicorn is more than the traceback of an answer that was ended with the server.

    It gives that of a request as an error, and that of the application's end as text.
    """
    ended = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    return not ended and not record.getMessage().rstrip().endswith("asyncio.exceptions.CancelledError")


class Server(uvicorn.Server):
    """Calls `let_go` when it is to end, before it waits; a second signal to end stops the waiting."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], Awaitable[None]]) -> None:
        """Serve nothing yet."""
        super().__init__(config)
        self._let_go = let_go
        logging.getLogger("uvicorn.error").addFilter(_says_more)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the answers in progress, then the server."""
        going = asyncio.ensure_future(self._let_go())
        while not going.done() and not self.force_exit:
            await asyncio.wait({going}, timeout=_LOOK_S)
        await super().shutdown(sockets)


def run(app: FastAPI, *listening: socket.socket) -> None:
    """Serve the application of `create_app` until a signal ends the server."""
    connections = OpenConnections(app.state.limits, _more_descriptors())
    config = uvicorn.Config(
        app,
        http=connection_class(connections),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        # Whose a request is, its token says, not the address in a header that anybody can send.
        proxy_headers=False,
        backlog=_TAKEN_AT_ONCE,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    Server(config, app.state.let_go).run(sockets=list(listening))


def _more_descriptors() -> int:
    """Raise the number of descriptors that this process may have, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return wanted if soft == resource.RLIM_INFINITY else soft
