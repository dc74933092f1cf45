"""Whose a connection is: asked of the kernel, for real connections and for recorded tables."""

import asyncio
import os
import socket
import stat
import subprocess
import sys
from contextlib import contextmanager

import pytest

from autotune.errors import CannotRunHereError
from autotune.service.peers.peer import Peer, PeerFinder
from autotune.service.peers.proc_sockets import user_in_proc
from autotune.service.peers.socket_diag import diagnosis
from autotune.service.peers.unix_socket import unix_socket

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:21C2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 0100007F:21C2 0100007F:B3F2 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 30 10 -1
   2: 0100007F:B3F2 0100007F:21C2 01 00000000:00000000 00:00000000 00000000  1717        0 13 1 0 20 4 30 10 -1
"""
PEER, HERE = ("127.0.0.1", 0xB3F2), ("127.0.0.1", 0x21C2)

little_endian = pytest.mark.skipif(sys.byteorder != "little", reason="the recorded table is of such a host")


def by_proc(peer, here):
    return user_in_proc(peer, here)


def by_diagnosis(peer, here):
    if diagnosis() is None:
        pytest.skip("this kernel does not offer it")
    return diagnosis().user(peer, here)


both_ways = pytest.mark.parametrize("user", [by_proc, by_diagnosis])


@little_endian
def test_the_user_of_the_other_end_is_found_and_not_our_own(tmp_path):
    table = tmp_path / "tcp"
    table.write_text(TABLE)
    assert user_in_proc(PEER, HERE, {4: table}) == 1717
    assert user_in_proc(("127.0.0.1", 0xB3F3), HERE, {4: table}) is None


@little_endian
def test_a_connection_that_was_closed_is_nobodys(tmp_path):
    table = tmp_path / "tcp"
    table.write_text(TABLE.replace("1717        0 13", "   0        0 0").replace("21C2 01 0", "21C2 04 0"))
    assert user_in_proc(PEER, HERE, {4: table}) is None


@both_ways
def test_a_real_connection_that_was_closed_is_nobodys(user):
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            peer = client.getsockname()
        assert user(peer, server.getsockname()) is None


def test_where_the_kernel_tells_nothing_nobody_is_known(tmp_path):
    assert user_in_proc(("127.0.0.1", 1), ("127.0.0.1", 2), {4: tmp_path / "missing"}) is None
    with socket.socket() as end:
        for address, here in [
            (("192.0.2.7", 1), ("192.0.2.1", 2)),
            (("testclient", 1), ("127.0.0.1", 2)),
            (None, None),
        ]:
            peer = PeerFinder().peer(end, address, here)
            asyncio.run(PeerFinder().complete(peer))
            assert (peer.user, peer.known, peer.own) == (None, True, False)


@both_ways
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_real_connection_of_this_user(user, family, host):
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"no {host} here")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        assert user(client.getsockname()[:2], server.getsockname()[:2]) == os.geteuid()


def test_without_the_kernels_diagnosis_the_table_is_read_once_a_connection(monkeypatch):
    asked = []
    monkeypatch.setattr("autotune.service.peers.peer.diagnosis", lambda: None)
    monkeypatch.setattr("autotune.service.peers.peer.user_in_proc", lambda *ends: asked.append(ends) or os.geteuid())

    async def scene():
        with socket.socket() as end:
            finder = PeerFinder()
            peer = finder.peer(end, PEER, HERE)
            assert not peer.own
            for _ in range(3):
                await finder.complete(peer)
            assert peer.own

    asyncio.run(scene())
    assert asked == [(PEER, HERE)]


def test_all_of_a_users_connections_and_all_of_an_ipv6_network_are_one_caller():
    assert Peer(PEER, HERE, user=7).key == Peer(("127.0.0.1", 5), HERE, user=7).key != Peer(PEER, HERE).key
    near, far = ("2001:db8::1", 5), ("2001:db8:0:1::1", 5)
    assert Peer(near).key == Peer(("2001:db8::ffff:1", 6)).key != Peer(far).key


STRANGER = """
import encodings.idna, os, socket, sys
os.setuid(65534)
socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)
"""


@contextmanager
def another_user(port, program=STRANGER):
    """Let another user run a program of Python, which is given the port."""
    command = [sys.executable, "-I", "-S", "-c", program, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        yield other


only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


@only_root
@both_ways
def test_a_real_connection_of_another_user(user):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        with another_user(server.getsockname()[1]) as other:
            connection, peer = server.accept()
            with connection:
                assert user(peer, server.getsockname()) == 65534
        assert other.returncode == 0


def test_a_unix_socket_is_this_users_and_says_whose_a_connection_is(tmp_path):
    path = tmp_path / "a.sock"
    with unix_socket(path) as listening:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            end, _ = listening.accept()
            with end:
                peer = PeerFinder().peer(end, None, None)
        assert (peer.user, peer.own, peer.unix, peer.known) == (os.geteuid(), True, True, True)
        with pytest.raises(CannotRunHereError, match="Address already in use"), unix_socket(path):
            pytest.fail("somebody listens there")
        listening.close()
        with unix_socket(path):  # what is left of a service that was killed
            pass
    assert not path.exists()
    path.write_text("mine")
    with pytest.raises(CannotRunHereError, match="--socket names a file that is not there"), unix_socket(path):
        pytest.fail("it is no socket")
    assert path.read_text() == "mine"
