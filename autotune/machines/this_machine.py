"""The machine: what its hardware offers to a study, as facts for constraints and for the record.

Cores are counted as a scheduler counts them: physical cores that this process may use (affinity mask, cgroup quota),
one hardware thread each. How many of them a core has is told beside that.
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
    """One machine, or `nodes` alike of a cluster; all other fields describe one of them, called `host`.

    `cpus` are the numbers of the hardware threads to use, one for each physical core. A run that asks for them may use
    up to `threads_per_core` of each core.
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
        """How many physical cores a study may use, on all nodes together."""
        return self.nodes * self.cores_per_node

    @property
    def cores_per_node(self) -> int:
        """How many physical cores of one node a study may use."""
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
        """What must be the same for two measurements to be comparable.

        A host's name is not part of it, nor the number of nodes: a run has only the nodes that it requests.
        """
        return {
            "cpu": self.cpu_model,
            "cores": str(self.cores_per_node),
            "memory_gib": str(round(self.memory_bytes / 2**30)),
        }

    def describe(self) -> dict[str, Any]:
        """Return all facts, JSON-able, to be kept with a study."""
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
        # Further hardware threads would only use the same time up faster.
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
    """Return for how many CPUs' time the control groups allow at once; None without a limit."""
    limits = [_words(group / "cpu.max") for group in _groups("")]
    limits += [[*_words(group / "cpu.cfs_quota_us"), *_words(group / "cpu.cfs_period_us")] for group in _groups("cpu")]
    quotas = [int(limit[0]) / int(limit[1]) for limit in limits if len(limit) == 2 and all(map(str.isdigit, limit))]
    return min(quotas, default=None)


def _memory_bytes() -> int:
    limits = [_words(group / "memory.max") for group in _groups("")]
    limits += [_words(group / "memory.limit_in_bytes") for group in _groups("memory")]
    told = [int(limit[0]) for limit in limits if limit and limit[0].isdigit()]
    return min([int(psutil.virtual_memory().total), *told])


def _groups(controller: str) -> list[Path]:
    """Return the folders of this process's control group and of all above it: each may have a limit.

    Of version 2 of control groups, or of a `controller` of version 1. In a container they may lie at the root.
    """
    own = parse_cgroups(read_if_there(_OWN_GROUPS)).get(controller, "")
    return [_CGROUP / controller / path.lstrip("/") for path in group_and_parents(own)]


def _words(path: Path) -> list[str]:
    return read_if_there(path).split()


def _cpu_model() -> str:
    told = dict(line.partition(":")[::2] for line in reversed(read_if_there(Path("/proc/cpuinfo")).splitlines()))
    found = {key.strip(): " ".join(value.split()) for key, value in told.items()}
    # ARM's kernel tells numbers, POWER's has a key of its own.
    if "CPU part" in found:
        numbers = (found.get(f"CPU {key}", "?") for key in ("implementer", "part", "variant"))
        return f"{platform.machine()} {'/'.join(numbers)}"
    names = (found.get(key) for key in ("model name", "cpu model", "cpu"))
    return next(filter(None, names), platform.processor() or platform.machine())


def read_if_there(path: Path) -> str:
    """Return the text of one of the kernel's files; empty if there is no such file, or it may not be read.

    Raises:
        OSError: it cannot be read now: a machine that is described without it would be another one.
    """
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        if is_transient(error):
            raise
        return ""


def read_or_empty(path: Path) -> str:
    """Return the text of one of the kernel's files, without which a machine is the same; empty if there is none now."""
    try:
        return read_if_there(path)
    except OSError:
        return ""
