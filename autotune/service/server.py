"""Server: uvicorn, which waits for answers to end, and for those that would never end lets their askers go first."""

import asyncio
import socket
from collections.abc import Awaitable, Callable

import uvicorn

_LOOK_S = 0.1


class Server(uvicorn.Server):
    """Calls `let_go` when it is to end, before it waits; whoever tells it to end twice waits for nothing."""

    def __init__(self, config: uvicorn.Config, let_go: Callable[[], Awaitable[None]]) -> None:
        """Serve nothing yet."""
        super().__init__(config)
        self._let_go = let_go

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End, with all that is going on."""
        going = asyncio.ensure_future(self._let_go())
        while not going.done() and not self.force_exit:
            await asyncio.wait({going}, timeout=_LOOK_S)
        await super().shutdown(sockets)
