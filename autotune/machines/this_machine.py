"""This machine: the cores, memory and other facts that its hardware offers to a study.

Cores are counted as a scheduler counts them: the physical cores that this process may use (affinity mask, cgroup
quota), each with one hardware thread. `threads_per_core` gives the hardware threads of a core.
"""

import os
import platform
import socket
from dataclasses import asdict, dataclass
from functools import cache
from math import floor
from pathlib import Path
from typing import Any

import archspec.cpu
import psutil

from launchers.cpus import CPUS, fewest_threads, one_thread_per_core
from launchers.noise.meter import group_and_parents, parse_cgroups
from launchers.software.transient_errors import is_transient

FACTS = frozenset({"cores", "nodes", "cores_per_node", "threads_per_core", "sockets", "memory_bytes"})
"""The names of the facts of a machine that expressions in a space may use."""

_CGROUP = Path("/sys/fs/cgroup")
_OWN_GROUPS = Path("/proc/self/cgroup")


@dataclass(frozen=True)
class Machine:
    """A machine, or several equal nodes of a cluster.

    Attributes:
        host: The name of one node. All fields but `nodes` describe this node.
        cpus: The numbers of the hardware threads to use, one for each physical core.
        nodes: How many equal nodes there are.
        threads_per_core: The hardware threads of each core that a run may use if it asks for more than one.
    """

    host: str
    cpu_model: str
    microarchitecture: str
    cpus: tuple[int, ...]
    sockets: int
    memory_bytes: int
    system: str
    nodes: int = 1
    threads_per_core: int = 1

    @property
    def cores(self) -> int:
        """The number of physical cores that a study may use, on all nodes together."""
        return self.nodes * self.cores_per_node

    @property
    def cores_per_node(self) -> int:
        """The number of physical cores of one node that a study may use."""
        return len(self.cpus)

    @property
    def facts(self) -> dict[str, int | float | str | bool]:
        """The facts that expressions in a space may name."""
        return {
            "cores": self.cores,
            "nodes": self.nodes,
            "cores_per_node": self.cores_per_node,
            "threads_per_core": self.threads_per_core,
            "sockets": self.sockets,
            "memory_bytes": self.memory_bytes,
        }

    @property
    def identity(self) -> dict[str, str]:
        """The facts that must be equal for two measurements to be comparable.

        The host's name is not among them, nor the number of nodes: a run has only the nodes that it requests.
        """
        return {
            "cpu": self.cpu_model,
            "cores": str(self.cores_per_node),
            "memory_gib": str(round(self.memory_bytes / 2**30)),
        }

    def describe(self) -> dict[str, Any]:
        """Return all facts, JSON-able, for storage with a study."""
        return asdict(self) | {"cpus": list(self.cpus), "cores": self.cores}

    def __str__(self) -> str:
        memory_gib = self.memory_bytes / 2**30
        plural = "" if self.cores_per_node == 1 else "s"
        cpu = f"{self.cpu_model} ({self.microarchitecture})"
        each = f"{self.cores_per_node} core{plural} of {cpu}, {memory_gib:.0f} GiB"
        return f"{self.host}: {each}" if self.nodes == 1 else f"{self.nodes} nodes like {self.host}, each {each}"


@cache
def this_machine() -> Machine:
    """Describe the machine that this process runs on."""
    allowed = os.sched_getaffinity(0)
    cpus, quota = one_thread_per_core(allowed), _cpu_quota()
    threads = fewest_threads(cpus, allowed)
    if quota is not None:
        cpus = cpus[: max(1, floor(quota))]
        # The quota is processor time: further hardware threads would only use it up faster.
        threads = min(threads, max(1, floor(quota / len(cpus))))
    return Machine(
        host=socket.gethostname(),
        cpu_model=_cpu_model(),
        microarchitecture=str(archspec.cpu.host().name),
        cpus=cpus,
        sockets=_sockets(cpus),
        memory_bytes=_memory_bytes(),
        system=platform.platform(),
        threads_per_core=threads,
    )


def _sockets(cpus: tuple[int, ...]) -> int:
    packages = {read_if_there(Path(CPUS, f"cpu{cpu}/topology/physical_package_id")).strip() for cpu in cpus}
    return max(1, len(packages - {""}))


def _cpu_quota() -> float | None:
    """Return the number of CPUs whose time the control groups allow; None without a limit."""
    limits = [_words(group / "cpu.max") for group in _groups("")]
    limits += [[*_words(group / "cpu.cfs_quota_us"), *_words(group / "cpu.cfs_period_us")] for group in _groups("cpu")]
    quotas = [int(limit[0]) / int(limit[1]) for limit in limits if len(limit) == 2 and all(map(str.isdigit, limit))]
    return min(quotas, default=None)


def _memory_bytes() -> int:
    limits = [_words(group / "memory.max") for group in _groups("")]
    limits += [_words(group / "memory.limit_in_bytes") for group in _groups("memory")]
    allowed = [int(limit[0]) for limit in limits if limit and limit[0].isdigit()]
    return min([int(psutil.virtual_memory().total), *allowed])


def _groups(controller: str) -> list[Path]:
    """Return the folders of this process's control group and of all groups above it: each may have a limit.

    An empty `controller` means control groups of version 2, a name one of version 1. In a container the group may be
    mounted at the root.
    """
    own = parse_cgroups(read_if_there(_OWN_GROUPS)).get(controller, "")
    return [_CGROUP / controller / path.lstrip("/") for path in group_and_parents(own)]


def _words(path: Path) -> list[str]:
    return read_if_there(path).split()


def _cpu_model() -> str:
    lines = dict(line.partition(":")[::2] for line in reversed(read_if_there(Path("/proc/cpuinfo")).splitlines()))
    found = {key.strip(): " ".join(value.split()) for key, value in lines.items()}
    # On ARM the kernel gives numbers instead of a name, on POWER it has a key of its own.
    if "CPU part" in found:
        numbers = (found.get(f"CPU {key}", "?") for key in ("implementer", "part", "variant"))
        return f"{platform.machine()} {'/'.join(numbers)}"
    names = (found.get(key) for key in ("model name", "cpu model", "cpu"))
    return next(filter(None, names), platform.processor() or platform.machine())


def read_if_there(path: Path) -> str:
    """Return the text of a kernel file; empty if the file does not exist or may not be read.

    Raises:
        OSError: the file cannot be read at the moment. The facts without it would describe another machine.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        if is_transient(error):
            raise
        return ""


def read_or_empty(path: Path) -> str:
    """Return the text of a kernel file that no identity depends on; empty if it cannot be read for any reason."""
    try:
        return read_if_there(path)
    except OSError:
        return ""
