"""Connections of strangers: what they may keep, and what this user keeps whatever they do. Over real sockets."""

import asyncio
import os
from contextlib import asynccontextmanager

import pytest
import uvicorn
from uvicorn.server import ServerState

from autotune.service.connections import Visitors, connections_of
from autotune.service.peers.peer import Peer, PeerFinder
from autotune.service.settings import Limits
from tests.autotune.service.serving import serving
from tests.autotune.service.test_peer import another_user, only_root

SHORT = Limits(headers_s=0.15, body_s=0.15, unread_s=0.1)
STRANGER = 54321
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
BIG = 32 * 2**20
CLIENTS = []


class Finder(PeerFinder):
    """Takes every connection for one of `user`."""

    def __init__(self, user):
        self.user = user

    def peer(self, connection, address, here):
        return Peer(address, here, user=self.user, known=True)


async def answer(scope, receive, send):
    if scope["path"] == "/trust":
        scope["state"]["peer"].trusted = True
    size = BIG if scope["path"] == "/big" else 2
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(size).encode())]})
    await send({"type": "http.response.body", "body": b"x" * size})


@asynccontextmanager
async def listening(limits, finder=None, descriptors=1000):
    config = uvicorn.Config(answer, http=connections_of(Visitors(finder or Finder(STRANGER), limits, descriptors)))
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


async def opened(port, sent=b"", limit=2**16):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
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


async def still_there(reader, writer):
    writer.write(REQUEST)
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


def test_who_does_not_read_an_answer_is_let_go():
    async def scene():
        async with listening(SHORT) as port:
            reader, writer = await opened(port, REQUEST.replace(b"/ ", b"/big ", 1), limit=2**10)
            await asyncio.sleep(10 * SHORT.unread_s)
            assert len(await ended(reader)) < BIG
            writer.close()

    asyncio.run(scene())


def test_a_new_connection_of_a_stranger_ends_the_oldest_of_the_same_one():
    finder = Finder(STRANGER)

    async def scene():
        async with listening(Limits(strangers_each=2), finder) as port:
            finder.user = None  # not this user, and not that one
            other = await opened(port)
            await still_there(*other)
            finder.user = STRANGER
            connections = []
            for _ in range(4):
                connections.append(await opened(port))
                if len(connections) <= 2:
                    assert await still_there(*connections[-1])
            assert await ended(connections[0][0]) == b""
            assert await ended(connections[1][0]) == b""
            for one in (*connections[2:], other):
                assert await still_there(*one)

    asyncio.run(scene())


def test_this_user_and_those_with_a_token_keep_their_connections():
    finder = Finder(STRANGER)

    async def scene():
        async with listening(Limits(strangers=8, strangers_each=3), finder, descriptors=32) as port:
            trusted = await opened(port, REQUEST.replace(b"/ ", b"/trust ", 1))
            await trusted[0].readuntil(b"xx")
            finder.user = os.geteuid()
            own = [await opened(port) for _ in range(20)]
            for number in range(30):
                finder.user = STRANGER + number % 15
                stranger = await opened(port)
                assert await still_there(*stranger)
            for one in (*own, trusted):
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


@pytest.mark.full
@only_root
def test_a_stranger_of_this_host_cannot_shut_the_owner_out(tmp_path):
    with serving(tmp_path) as service, another_user(service.port, HEALTH) as other:
        assert other.stdout.readline() == b"held\n"
        for _ in range(5):
            with service.client() as client:
                assert client.studies() == []
        other.stdin.close()
