"""The table of sockets in /proc (proc(5), /proc/net/tcp): whose a socket is. To read it takes long on a busy host."""

import sys
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

Address = tuple[str, int]

_TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}


def user_in_proc(peer: Address, here: Address, tables: dict[int, Path] | None = None) -> int | None:
    """Return the number of the user whose socket is at `peer` and connected to `here`; None if there is none."""
    host, target = ip_address(peer[0]), ip_address(here[0])
    return _user_of((tables or _TABLES)[host.version], _row(host, peer[1]), _row(target, here[1]))


def _user_of(table: Path, local: str, remote: str) -> int | None:
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
