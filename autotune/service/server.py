"""Server: uvicorn, which waits for answers to end; answers that would never end are ended first."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import uvicorn
from fastapi import FastAPI

_LOOK_S = 0.1
# Longer than clients and proxies keep a connection without use (often 60 s): else a request may meet its closing.
_IDLE_S = 75
# How long the answers that are being sent may take when the service ends.
_PATIENCE_S = 2


class Server(uvicorn.Server):
    """Calls `let_go` when it is to end, before it waits; a second signal to end stops the waiting."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], Awaitable[None]]) -> None:
        """Serve nothing yet."""
        super().__init__(config)
        self._let_go = let_go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the answers in progress, then the server."""
        going = asyncio.ensure_future(self._let_go())
        while not going.done() and not self.force_exit:
            await asyncio.wait({going}, timeout=_LOOK_S)
        await super().shutdown(sockets)


def run(app: FastAPI, listening: socket.socket) -> None:
    """Serve the application of `create_app` until a signal ends the server."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        # With them every user of this host could pass their connection off as another user's.
        proxy_headers=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    Server(config, app.state.let_go).run(sockets=[listening])
