"""Whose a connection is: read from the kernel, for real connections and for recorded tables."""

import os
import socket
import subprocess
import sys

import pytest

from autotune.service.peer_user import is_own, user_of

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:21C2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0
   1: 0100007F:21C2 0100007F:B3F2 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 20 4 30 10 -1
   2: 0100007F:B3F2 0100007F:21C2 01 00000000:00000000 00:00000000 00000000  1717        0 13 1 0 20 4 30 10 -1
"""


def test_the_user_of_the_other_end_is_found_and_not_our_own(tmp_path):
    table = tmp_path / "tcp"
    table.write_text(TABLE)
    assert user_of(table, "0100007F:B3F2", "0100007F:21C2") == 1717
    assert user_of(table, "0100007F:B3F3", "0100007F:21C2") is None
    if sys.byteorder == "little":
        assert not is_own(("127.0.0.1", 0xB3F2), ("127.0.0.1", 0x21C2), {4: table})
        table.write_text(TABLE.replace("1717", str(os.geteuid())))
        assert is_own(("127.0.0.1", 0xB3F2), ("127.0.0.1", 0x21C2), {4: table})


def test_a_connection_that_was_closed_is_nobodys(tmp_path):
    table = tmp_path / "tcp"
    table.write_text(TABLE.replace("1717        0 13", "   0        0 0").replace("21C2 01 0", "21C2 04 0"))
    assert user_of(table, "0100007F:B3F2", "0100007F:21C2") is None


def test_where_the_kernel_tells_nothing_nobody_is_known(tmp_path):
    assert not is_own(("127.0.0.1", 1), ("127.0.0.1", 2), {4: tmp_path / "missing"})
    assert not is_own(("192.0.2.7", 1), ("192.0.2.1", 2))
    assert not is_own(("testclient", 1), ("127.0.0.1", 2))


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_a_real_connection_of_this_user(family, host):
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"no {host} here")
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        assert is_own(client.getsockname()[:2], server.getsockname()[:2])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_real_connection_of_another_user():
    program = (
        "import encodings.idna, os, socket, sys\n"
        "os.setuid(65534)\n"
        "socket.create_connection(('127.0.0.1', int(sys.argv[1]))).recv(1)\n"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        port = str(server.getsockname()[1])
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", program, port]) as other:
            connection, peer = server.accept()
            with connection:
                assert not is_own(peer, server.getsockname())
        assert other.returncode == 0
