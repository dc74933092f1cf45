"""Connections: how many callers may keep, and what this user keeps whatever others do. Over real sockets."""

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager

import pytest
import uvicorn
from uvicorn.server import ServerState

from autotune.service.callers import CallerKind
from autotune.service.connections import OpenConnections, connection_class
from autotune.service.settings import Limits
from tests.autotune.service.serving import serving

SHORT = Limits(headers_s=0.15, body_s=0.15)
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
KINDS = {"/own": CallerKind.OWN, "/token": CallerKind.TOKEN}
CLIENTS = []


async def answer(scope, receive, send):
    if scope["path"] in KINDS:
        scope["state"]["connection"].admit(KINDS[scope["path"]])
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"xx"})


@asynccontextmanager
async def listening(limits, descriptors=1000):
    config = uvicorn.Config(answer, http=connection_class(OpenConnections(limits, descriptors)))
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: config.http_protocol_class(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    if not config.loaded:
        config.load()
    async with server:
        yield server.sockets[0].getsockname()[1]
        for end in [*CLIENTS, *state.connections]:
            end.transport.abort()
        CLIENTS.clear()
        await asyncio.sleep(0.01)


async def opened(port, sent=b""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    CLIENTS.append(writer)
    return reader, writer


async def ended(reader):
    """Read until the service closes the connection; what came before is returned."""
    said = b""
    try:
        async with asyncio.timeout(20):
            while part := await reader.read(2**16):
                said += part
    except ConnectionError:
        pass
    return said


async def still_there(reader, writer, path=b"/"):
    writer.write(REQUEST.replace(b"/", path, 1))
    return (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200") and await reader.readexactly(2) == b"xx"


POST = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "again", "said"),
    [(b"", b"", b""), (b"G", b"", b""), (REQUEST[:-2], b"X: 1\r\n", b""), (POST, b"x", b"HTTP/1.1 200")],
    ids=["nothing", "a letter", "slow headers", "a slow body that was answered"],
)
def test_who_does_not_come_to_the_end_of_a_request_is_let_go(first, again, said):
    async def scene():
        async with listening(SHORT) as port:
            reader, writer = await opened(port, first)

            async def drip():
                while True:
                    await asyncio.sleep(0.02)
                    writer.write(again)

            dripping = asyncio.create_task(drip())
            assert (await ended(reader)).startswith(said)
            dripping.cancel()
            writer.close()

    asyncio.run(scene())


def test_between_requests_a_connection_may_rest():
    async def scene():
        async with listening(SHORT) as port:
            reader, writer = await opened(port)
            for _ in range(3):
                assert await still_there(reader, writer)
                await asyncio.sleep(2 * SHORT.headers_s)
            writer.write(REQUEST[:-2])  # and then the deadline holds again
            assert await ended(reader) == b""

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("path", "limits"),
    [(b"/", Limits(anonymous_connections=2)), (b"/token", Limits(token_connections=2))],
    ids=["anonymous", "token"],
)
def test_where_callers_of_one_kind_have_too_many_the_oldest_is_closed(path, limits):
    async def scene():
        async with listening(limits) as port:
            connections = []
            for _ in range(4):
                connections.append(await opened(port))
                assert await still_there(*connections[-1], path)
            for reader, _ in connections[:2]:
                assert await ended(reader) == b""
            for one in connections[2:]:
                assert await still_there(*one)

    asyncio.run(scene())


def test_the_users_own_connections_and_those_with_a_token_stay_whatever_anonymous_callers_do():
    async def scene():
        async with listening(Limits(anonymous_connections=8), descriptors=32) as port:
            kept = [await opened(port) for _ in range(4)]
            for one in kept:
                assert await still_there(*one, b"/token")
            for _ in range(20):
                kept.append(await opened(port))
                assert await still_there(*kept[-1], b"/own")
            for _ in range(30):
                assert await still_there(*await opened(port))
            for one in kept:
                assert await still_there(*one)

    asyncio.run(scene())


HEALTH = """
import encodings.idna, os, socket, sys
os.setuid(65534)
held = []
for sent in (b"POST /health HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 9\\r\\n\\r\\n", b""):
    for _ in range(150):
        held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
        held[-1].sendall(sent)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_user(port, program):
    """Let another user run a program of Python, which is given the port."""
    command = [sys.executable, "-I", "-S", "-c", program, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        yield other


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_stranger_of_this_host_cannot_shut_the_owner_out(tmp_path):
    with serving(tmp_path) as service, another_user(service.port, HEALTH) as other:
        assert other.stdout.readline() == b"held\n"
        for _ in range(5):
            with service.client() as client:
                assert client.studies() == []
        other.stdin.close()
