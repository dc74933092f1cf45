"""Peers: whether a connection on this host comes from the user who started the service.

On a host with many users (a login node) the loopback address is everybody's. The kernel tells whose the other end of a
connection is: proc(5), /proc/net/tcp.
"""

import os
import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

Address = tuple[str, int]

_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}


def is_own(peer: Address, here: Address, tables: dict[int, Path] | None = None) -> bool:
    """Whether the process at `peer` is this user's, and on this host; False where the kernel does not tell."""
    try:
        host, target = ip_address(peer[0]), ip_address(here[0])
    except ValueError:
        return False
    if not host.is_loopback:
        return False
    user = user_of((tables or _TABLES)[host.version], _row(host, peer[1]), _row(target, here[1]))
    return user == os.geteuid()


def user_of(table: Path, local: str, remote: str) -> int | None:
    """Return the number of the user whose socket is at `local` and connected to `remote`; None if there is none."""
    try:
        lines = table.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines[1:]:
        columns = line.split()
        if columns[1] == local and columns[2] == remote:
            # A closed socket has no inode; many kernels then report user 0 as its owner.
            return int(columns[7]) if columns[9] != "0" else None
    return None


def _row(address: IPv4Address | IPv6Address, port: int) -> str:
    """Return an address as the kernel writes it: words of four bytes in the machine's order, in hexadecimal."""
    packed = address.packed
    step = -1 if sys.byteorder == "little" else 1
    words = [packed[start : start + 4][::step] for start in range(0, len(packed), 4)]
    return f"{b''.join(words).hex().upper()}:{port:04X}"
