"""Peers: who is at the other end of a connection.

On a host with many users (a login node) the loopback address is everybody's. The kernel tells whose the other end of a
connection is; that does not change while the connection is open, so it is asked once for each.
"""

import os
import socket
import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from anyio import CapacityLimiter, to_thread

from autotune.service.peers.proc_sockets import Address, user_in_proc
from autotune.service.peers.socket_diag import diagnosis

_CREDENTIALS = struct.Struct("iII")
# Whoever has one IPv6 address as a rule has all of its network.
_NETWORK_BITS = 64


@dataclass(eq=False)
class Peer:
    """The other end of a connection: its `address` (None for a Unix socket), and that of this end, `here`.

    `user` is the number of its user, None on another host and while that is not known; `known` says that nobody needs
    to ask. It is `trusted` once it has shown a token that is right.
    """

    address: Address | None = None
    here: Address | None = None
    user: int | None = None
    known: bool = False
    trusted: bool = False

    @property
    def unix(self) -> bool:
        """Whether it came through a Unix socket."""
        return self.address is None and self.user is not None

    @property
    def own(self) -> bool:
        """Whether it is known to be this user's."""
        return self.user == os.geteuid()

    @property
    def key(self) -> str:
        """What all connections of one user of this host, or of one other host, have in common."""
        if self.user is not None:
            return f"user {self.user}"
        host = _ip(self.address)
        if isinstance(host, IPv6Address):
            return str(IPv6Network((host, _NETWORK_BITS), strict=False))
        return str(host)

    @property
    def on_this_host(self) -> bool:
        """Whether the other end is on this host, too."""
        host = _ip(self.address)
        return host is not None and host.is_loopback


class PeerFinder:
    """Finds out whose connections are.

    Where the kernel answers for a single connection, that is known from its beginning. Elsewhere its table of all
    sockets is read, in a thread and by one at a time, when a request needs to know.
    """

    def __init__(self) -> None:
        """Find out what the kernel offers."""
        self._reading: CapacityLimiter | None = None
        self._diagnosis = diagnosis()

    def peer(self, connection: socket.socket, address: Address | None, here: Address | None) -> Peer:
        """Return the peer of a new connection."""
        if connection.family == socket.AF_UNIX:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
            return Peer(user=_CREDENTIALS.unpack(credentials)[1], known=True)
        peer = Peer(address, here)
        if address is None or here is None or not peer.on_this_host:
            peer.known = True
        elif self._diagnosis is not None:
            peer.user, peer.known = self._diagnosis.user(address, here), True
        return peer

    async def complete(self, peer: Peer) -> None:
        """Find out whose a connection is, if that is not known yet."""
        if peer.known or peer.address is None or peer.here is None:
            return
        self._reading = self._reading or CapacityLimiter(1)
        peer.user = await to_thread.run_sync(user_in_proc, peer.address, peer.here, limiter=self._reading)
        peer.known = True


def _ip(address: Address | None) -> IPv4Address | IPv6Address | None:
    try:
        return None if address is None else ip_address(address[0])
    except ValueError:
        return None
