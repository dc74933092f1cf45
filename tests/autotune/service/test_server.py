"""The server: how it ends, and how long it keeps idle connections."""

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

import httpx
import pytest
import uvicorn

from autotune.service import server as servers
from autotune.service.routes.app import create_app
from autotune.service.server import Server, run
from autotune.service.settings import Limits, Settings
from autotune.supervision import StudySupervisor
from tests.autotune.service.test_access import HERE, START

EXCEEDED = "timeout graceful shutdown exceeded"


async def never(scope, receive, send):
    """Answer nothing, and end with an error of its own when it is told to end."""
    await receive()
    if scope["type"] == "lifespan":
        await send({"type": "lifespan.startup.complete"})
        try:
            await receive()
        except asyncio.CancelledError:
            await send(
                {"type": "lifespan.shutdown.failed", "message": "Traceback\nasyncio.exceptions.CancelledError\n"}
            )
            raise
    await asyncio.Event().wait()


@pytest.mark.parametrize("forced", [False, True])
def test_a_request_that_is_ended_with_the_server_leaves_no_traceback(caplog, forced):
    async def serve():
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            config = uvicorn.Config(never, log_config=None, loop="asyncio", timeout_graceful_shutdown=0)
            server = Server(config, lambda: asyncio.sleep(0))
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            while not server.started:
                await asyncio.sleep(0.01)
            _, out = await asyncio.open_connection(*listening.getsockname())
            out.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            while not server.server_state.tasks:
                await asyncio.sleep(0.01)
            server.should_exit = True
            server.force_exit = forced
            if forced:
                await asyncio.wait_for(serving, 20)
            for _ in range(200):
                if EXCEEDED in caplog.text:
                    break
                await asyncio.wait({serving}, timeout=0.1)
            out.close()

    asyncio.run(serve())
    assert "Traceback" not in caplog.text
    assert "CancelledError" not in caplog.text
    assert EXCEEDED in caplog.text  # what uvicorn says else is heard


def test_requests_are_refused_at_once_when_the_service_ends_whatever_it_is_doing(tmp_path, monkeypatch):
    looks, looked = threading.Event(), threading.Event()

    def look_after_studies(_):
        looks.set()
        assert looked.wait(30)
        return []

    monkeypatch.setattr(StudySupervisor, "tick", look_after_studies)

    async def scene():
        app = create_app(Settings(f"sqlite:///{tmp_path / 'autotune.db'}", tmp_path / "service", start_token=START))
        shown = {"Authorization": f"Bearer {START}"}
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HERE, headers=shown) as client,
        ):
            assert await asyncio.to_thread(looks.wait, 30)
            assert (await client.get("/studies")).status_code == 200
            ending = asyncio.create_task(app.state.end_streams())
            await asyncio.sleep(0)
            answer = await client.get("/studies")
            is_waiting = not ending.done()
            looked.set()
            await ending
        assert (answer.status_code, is_waiting) == (503, True)

    asyncio.run(scene())


@pytest.mark.slow
@pytest.mark.parametrize(("end", "code"), [("sys.exit(4)", 4), ("raise KeyboardInterrupt", 130)])
def test_the_process_of_a_service_waits_for_no_module_of_its_own(end, code):
    # Python calls this when it ends its modules.
    slow = "class Slow:\n    def __del__(self): time.sleep(600)\nslow = Slow()\n"
    text = f"import sys, time\nfrom autotune.service.server import ending_at_once\n{slow}with ending_at_once(): {end}\n"
    ended = subprocess.run([sys.executable, "-c", text], stderr=subprocess.DEVNULL, timeout=600, check=False)
    assert ended.returncode == code


def test_broken_requests_of_strangers_fill_no_log(monkeypatch):
    now, lines = [100.0], []
    monkeypatch.setattr(servers.time, "monotonic", lambda: now[0])
    log = logging.Logger("uvicorn.error")
    log.addFilter(servers.LogFilter())
    log.addHandler(logging.Handler())
    monkeypatch.setattr(log.handlers[0], "emit", lambda record: lines.append(record.getMessage()))
    for _ in range(1000):
        log.warning("Invalid HTTP request received.")
    log.warning("Unsupported upgrade request.")
    log.error("a defect")
    log.error("a defect")
    now[0] += 61.0
    log.warning("Invalid HTTP request received.")
    again = "Invalid HTTP request received. (999 more since the last of these lines)"
    assert lines == [
        "Invalid HTTP request received.", "Unsupported upgrade request.", "a defect", "a defect", again
    ]  # fmt: skip


def test_an_idle_connection_is_kept_for_longer_than_a_minute(monkeypatch):
    """Clients and proxies that keep connections for up to a minute would else lose requests now and then."""
    kept_s = []
    monkeypatch.setattr(servers, "_more_descriptors", lambda: 1000)
    monkeypatch.setattr(Server, "run", lambda server, sockets: kept_s.append(server.config.timeout_keep_alive))
    run(SimpleNamespace(state=SimpleNamespace(limits=Limits(), end_streams=None)))
    assert kept_s[0] > 60
