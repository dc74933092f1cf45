"""Topology: which sockets, NUMA nodes and caches the cores of this machine share, as Linux tells it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autotune.machines.this_machine import read_or_empty
from launchers.cpus import CPUS, parse_cpu_list

_KINDS = ("cpu_core", "cpu_atom")


@dataclass(frozen=True)
class CorePlace:
    """Where a core is: its `kind` (of a hybrid processor), and what it is in, from the socket to the smallest cache.

    Each of `within` names a socket, a NUMA node or a cache; what Linux does not tell is empty.
    """

    kind: str
    within: tuple[str, ...]


PlaceOf = Callable[[int], CorePlace]
"""Tells where the core of a hardware thread is."""


def place_of(cpu: int, root: Path = Path("/")) -> CorePlace:
    """Return where the core of a hardware thread is; `root` is where the kernel's files are found."""
    folder = root / f"{CPUS.lstrip('/')}/cpu{cpu}"
    socket = read_or_empty(folder / "topology/physical_package_id").strip()
    node = min((path.name for path in folder.glob("node[0-9]*")), default="")
    caches = {
        read_or_empty(index / "level").strip(): read_or_empty(index / "shared_cpu_list").strip()
        for index in folder.glob("cache/index*")
        if read_or_empty(index / "type").strip() != "Instruction"
    }
    return CorePlace(_kind(cpu, folder, root), (socket, node, caches.get("3", ""), caches.get("2", "")))


def _kind(cpu: int, folder: Path, root: Path) -> str:
    """Return what tells the core from those of other kinds: cores of one kind are equally fast."""
    for kind in _KINDS:
        try:
            if cpu in parse_cpu_list(read_or_empty(root / f"sys/devices/{kind}/cpus")):
                return kind
        except ValueError:
            continue
    return read_or_empty(folder / "cpu_capacity").strip()
