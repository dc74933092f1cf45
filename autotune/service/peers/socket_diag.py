"""Socket diagnosis (sock_diag(7)): the kernel tells whose one socket is, in microseconds, however many there are."""

import atexit
import functools
import socket
import struct
from ipaddress import ip_address

from autotune.service.peers.proc_sockets import Address

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = (0xFFFFFFFF, 0xFFFFFFFF)
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBBI")
_COOKIE = struct.Struct("=III")
_ID_BYTES = 48
# expires, rqueue, wqueue, uid, inode: after the header, four bytes and the socket's id.
_TAIL = struct.Struct("=IIIII")
_TAIL_AT = _HEADER.size + 4 + _ID_BYTES


class SocketDiagnosis:
    """Asks the kernel about one TCP socket at a time. The kernel answers while it is asked: nothing waits."""

    def __init__(self) -> None:
        """Open the way to the kernel.

        Raises:
            OSError: this kernel, or the container, does not offer it.
        """
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
        self._socket.setblocking(False)
        self._asked = 0
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            if self.user(client.getsockname(), server.getsockname()) is None:
                self.close()
                msg = "the kernel does not tell whose a socket is"
                raise OSError(msg)

    def close(self) -> None:
        """Give up the way to the kernel."""
        self._socket.close()

    def user(self, peer: Address, here: Address) -> int | None:
        """Return the number of the user whose socket is at `peer` and connected to `here`; None if there is none."""
        self._asked = (self._asked + 1) & 0xFFFFFFFF
        host, target = ip_address(peer[0]), ip_address(here[0])
        family = socket.AF_INET if host.version == 4 else socket.AF_INET6
        ends = struct.pack("!HH", peer[1], here[1]) + host.packed.ljust(16, b"\0") + target.packed.ljust(16, b"\0")
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES) + ends + _COOKIE.pack(0, *_NO_COOKIE)
        header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, self._asked, 0)
        try:
            self._socket.send(header + body)
            while True:
                reply = self._socket.recv(4096)
                if _HEADER.unpack_from(reply)[3] == self._asked:
                    break
        except OSError:
            return None
        if len(reply) < _TAIL_AT + _TAIL.size or _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:
            return None
        *_, user, inode = _TAIL.unpack_from(reply, _TAIL_AT)
        # A closed socket has no inode; its user is then reported as 0.
        return int(user) if inode else None


@functools.cache
def diagnosis() -> SocketDiagnosis | None:
    """Return this process's way to ask, None where the kernel, or the container, offers none."""
    try:
        found = SocketDiagnosis()
    except OSError:
        return None
    atexit.register(found.close)
    return found
