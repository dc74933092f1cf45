"""Server: uvicorn, which ends streams before it waits for answers to end."""

import asyncio
import atexit
import logging
import os
import resource
import socket
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi import FastAPI

from autotune.errors import ExitCode
from autotune.service.connections import OpenConnections, connection_class
from autotune.storage.sqlite.held_file import close_held_files

_LOOK_S = 0.1
# Longer than clients and proxies keep an idle connection (often 60 s): else they may send a request as it is closed.
_IDLE_S = 75
# How long answers may take when the service ends.
_PATIENCE_S = 2
# Connections accepted before open connections get a turn again.
_TAKEN_AT_ONCE = 8
# Connections that wait in the kernel to be accepted.
_BACKLOG = 4096
# For as long a thread that draws keeps the event loop waiting; with Python's 5 ms the turns of a busy service add up.
_SWITCH_S = 0.001
# After a warning the same one is left out for this time.
_SILENT_S = 60.0
# More are of no use here, and some programs close every descriptor that they could have.
_MOST_DESCRIPTORS = 65_536


class LogFilter(logging.Filter):
    """Keeps out of the log what strangers could fill it with, and the tracebacks of answers that end with the server.

    Each warning is logged once a minute; the next one says how many were left out.
    """

    def __init__(self) -> None:
        """Begin without a warning."""
        super().__init__()
        self._silent_until: dict[str, float] = {}
        self._left_out: Counter[str] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record."""
        # uvicorn logs that of a request as an exception, and that of the application's end as text.
        ended = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
        if ended or record.getMessage().rstrip().endswith("asyncio.exceptions.CancelledError"):
            return False
        if record.levelno != logging.WARNING:
            return True
        said, now = record.msg, time.monotonic()
        if now < self._silent_until.get(said, 0.0):
            self._left_out[said] += 1
            return False
        self._silent_until[said] = now + _SILENT_S
        if left_out := self._left_out.pop(said, 0):
            record.msg = f"{said} ({left_out} more since the last of these lines)"
        return True


class Server(uvicorn.Server):
    """Calls `end_streams` before it waits for answers to end; a second signal stops the waiting."""

    def __init__(self, config: uvicorn.Config, end_streams: Callable[[], Awaitable[None]]) -> None:
        """Prepare to serve."""
        super().__init__(config)
        self._end_streams = end_streams
        logging.getLogger("uvicorn.error").addFilter(LogFilter())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(_BACKLOG)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams, then the server."""
        going = asyncio.ensure_future(self._end_streams())
        while not going.done() and not self.force_exit:
            await asyncio.wait({going}, timeout=_LOOK_S)
        await super().shutdown(sockets)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let this process end without Python's own end of its modules, if the block ends as a service does.

    Threads may still draw or predict. They and the modules that they use keep Python from ending for many seconds on a
    busy machine.
    """
    code: int | None = 0
    try:
        yield
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
        raise
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
        raise
    except BaseException:
        code = None
        raise
    finally:
        if code is not None:
            atexit.register(end_at_once, code)


def end_at_once(code: int) -> None:
    """End this process; of what Python does at its end, do what matters."""
    close_held_files()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(app: FastAPI, *listening: socket.socket) -> None:
    """Serve the application of `create_app` until a signal ends the server."""
    sys.setswitchinterval(_SWITCH_S)
    connections = OpenConnections(app.state.limits, _more_descriptors())
    config = uvicorn.Config(
        app,
        http=connection_class(connections),
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        # The token says whose a request is, not an address in a header that anybody can send.
        proxy_headers=False,
        backlog=_TAKEN_AT_ONCE,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_PATIENCE_S,
    )
    Server(config, app.state.end_streams).run(sockets=list(listening))


def _more_descriptors() -> int:
    """Raise this process's limit of descriptors, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return wanted if soft == resource.RLIM_INFINITY else soft
