"""Detect the network of this machine from the kernel's lists of ports."""

import re
from pathlib import Path

from autotune.machines.description import Network
from autotune.machines.this_machine import read_or_empty

# `200 Gb/sec (4X HDR)`
_RATE = re.compile(r"(\d+(?:\.\d+)?) Gb/sec(?: \(\d+X (\w+)\))?")


def find_network(root: Path = Path("/")) -> tuple[Network, str]:
    """Return the fastest connected network and the folder that lists it; both are empty without a network.

    The bandwidth is the sum of the signalling rates of all its ports.
    """
    for look, where in ((_infiniband, "sys/class/infiniband"), (_ethernet, "sys/class/net")):
        if (network := look(root / where)) is not None:
            return network, f"/{where}"
    return Network(), ""


def _infiniband(folder: Path) -> Network | None:
    rates_gbit, names = [], []
    for port in sorted(folder.glob("*/ports/*")):
        match = _RATE.search(read_or_empty(port / "rate"))
        if match is None or "ACTIVE" not in read_or_empty(port / "state"):
            continue
        layer = read_or_empty(port / "link_layer").strip() or "InfiniBand"
        # Omni-Path is listed under InfiniBand too; its driver is called hfi1.
        kind = "Omni-Path" if port.parent.parent.name.startswith("hfi") else layer
        rates_gbit.append(float(match[1]))
        names.append(f"{kind} {match[2] or ''}".strip())
    if not names:
        return None
    fastest = names[rates_gbit.index(max(rates_gbit))]
    total = sum(rate for rate, name in zip(rates_gbit, names, strict=True) if name == fastest)
    return Network(name=fastest, bandwidth_bytes_per_s=total * 1e9 / 8 or None)


def _ethernet(folder: Path) -> Network | None:
    speeds_mbit = []
    for port in sorted(folder.glob("*")):
        # Bridges, tunnels and the loopback have no `device`.
        if (port / "device").exists() and read_or_empty(port / "operstate").strip() == "up":
            text = read_or_empty(port / "speed").strip()
            speeds_mbit.append(int(text) if text.isdecimal() else 0)
    if not speeds_mbit:
        return None
    fastest = max(speeds_mbit)
    total = speeds_mbit.count(fastest) * fastest
    return Network(name="Ethernet", bandwidth_bytes_per_s=total * 1e6 / 8 if total else None)
