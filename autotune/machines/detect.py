"""Detect this machine from the kernel, the environment and the installed programs.

Detection never fails for a missing file or program: it leaves out the facts that it cannot find.
"""

import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from itertools import pairwise
from pathlib import Path

from autotune.machines.description import (
    Cpu,
    Disk,
    MachineDescription,
    MachineError,
    MeasuredFigures,
    Memory,
    Nodes,
    load,
)
from autotune.machines.facts import Facts
from autotune.machines.gpus import find_gpus
from autotune.machines.network import find_network
from autotune.machines.software import find_scheduler, find_software
from autotune.machines.this_machine import Machine, read_or_empty, this_machine
from autotune.machines.user_files import figures_file
from launchers.cpus import parse_cpu_list

_VENDORS = {"AuthenticAMD": "amd", "GenuineIntel": "intel", "HygonGenuine": "hygon", "0x41": "arm", "0x46": "fujitsu"}
_KIB = {"K": 1, "M": 1024, "G": 1024**2}


def describe_this_machine(machine: Machine | None = None, *, programs: bool = True) -> MachineDescription:
    """Return the description of this machine, with the figures measured on a machine like it, if any are stored.

    Args:
        machine: The part of this machine that is used, if not all of it; the figures are then those of its cores.
        programs: Whether to start programs that detect further facts. Without them detection takes milliseconds.

    Raises:
        MachineError: the file of measured figures has errors.
    """
    whole = this_machine()
    machine = machine or whole
    file = figures_file(_describe_cached(whole, programs=False).given)
    figures = load(file).measured if file.exists() else MeasuredFigures()
    if machine.cores != whole.cores:
        figures = figures_of_cores(figures, machine.cores)
    return add_figures(_describe_cached(machine, programs=programs), figures)


def add_figures(machine: MachineDescription, figures: MeasuredFigures) -> MachineDescription:
    """Return a copy of a detected machine with its measured figures."""
    if figures == MeasuredFigures():
        return machine
    source = f"autotune machine --measure, {figures.at}" if figures.at else "autotune machine --measure"
    return machine.model_copy(update={"measured": figures, "sources": machine.sources | {"measured": source}})


def figures_of_cores(figures: MeasuredFigures, cores: int) -> MeasuredFigures:
    """Return the figures of a part of the cores: rates of all cores become those of `cores` cores.

    Rates are interpolated linearly between the measured numbers of cores. A rate is dropped if it was not measured by
    the number of cores.
    """
    changed: dict[str, float | None] = {}
    for name, table in (
        ("memory_bandwidth_bytes_per_s", figures.memory_bandwidth_by_cores),
        ("blas_flops", figures.blas_flops_by_cores),
    ):
        changed[name] = _between({int(key): rate for key, rate in (table or {}).items() if key.isdecimal()}, cores)
    if cores < 2:
        changed |= {"mpi_latency_s": None, "mpi_bandwidth_bytes_per_s": None}
    return figures.model_copy(update=changed)


def _between(rates: Mapping[int, float], cores: int) -> float | None:
    if cores in rates:
        return rates[cores]
    for low, high in pairwise(sorted(rates)):
        if low < cores < high:
            return rates[low] + (rates[high] - rates[low]) * (cores - low) / (high - low)
    return None


def quick_facts(machine: Machine) -> Facts:
    """Return the facts of this machine without starting programs; ignore a file of figures that has errors."""
    with suppress(MachineError):
        return describe_this_machine(machine, programs=False).facts
    return _describe_cached(machine, programs=False).facts


@cache
def _describe_cached(machine: Machine, *, programs: bool) -> MachineDescription:
    return describe(machine, programs=programs)


def describe(machine: Machine, *, programs: bool, root: Path = Path("/")) -> MachineDescription:
    """Describe the machine that this process runs on.

    Args:
        machine: The cores and memory that may be used.
        programs: Whether to start programs that detect further facts.
        root: The folder with `proc`, `sys` and `etc`.
    """
    cpu, sources = _cpu(machine, root), {"cpu": "/proc/cpuinfo, /sys/devices/system/cpu", "memory": "/proc/meminfo"}
    gpu, gpu_source = find_gpus(programs=programs, root=root)
    network, network_source = find_network(root)
    software, software_sources = find_software(programs=programs, root=root)
    scheduler = find_scheduler()
    file_system = file_system_of(Path.cwd(), read_or_empty(root / "proc/self/mountinfo"))
    optional = {
        "cpu.microarchitecture": "archspec",
        "gpu": gpu_source,
        "network": network_source,
        "nodes": "the environment and PATH" if scheduler else "",
        "disk": "/proc/self/mountinfo, for the current folder" if file_system else "",
        **software_sources,
    }
    return MachineDescription(
        name="this",
        title=machine.host,
        nodes=Nodes(scheduler=scheduler),
        cpu=cpu,
        memory=Memory(bytes=machine.memory_bytes),
        gpu=gpu,
        network=network,
        disk=Disk(name=file_system or None),
        software=software.model_copy(update={"system": software.system or machine.system}),
        sources=sources | {path: source for path, source in optional.items() if source},
    )


def file_system_of(folder: Path, mountinfo: str) -> str:
    """Return the type of the file system that contains a folder (`ext4`, `lustre`); empty if it is not listed.

    Args:
        folder: The folder, as an absolute path.
        mountinfo: The text of /proc/self/mountinfo, see proc_pid_mountinfo(5).
    """
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        words = before.split()
        if len(words) < 5 or not after:
            continue
        mount = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), words[4]))
        # Of two mounts on the same folder the later one covers the other.
        if (folder == mount or mount in folder.parents) and len(mount.parts) >= best:
            best, kind = len(mount.parts), after.split()[0]
    return kind


def _cpu(machine: Machine, root: Path) -> Cpu:
    info = _cpuinfo(root)
    first = root / f"sys/devices/system/cpu/cpu{machine.cpus[0] if machine.cpus else 0}"
    flags = set((info.get("flags") or info.get("Features") or "").split())
    siblings = parse_cpu_list(read_or_empty(first / "topology/thread_siblings_list"))
    return Cpu(
        vendor=_vendor(info),
        model=machine.cpu_model or None,
        architecture=platform.machine() or None,
        microarchitecture=machine.microarchitecture or None,
        sockets=machine.sockets,
        cores_per_node=machine.cores_per_node or None,
        threads_per_core=len(siblings) or None,
        frequency_hz=_frequency_hz(first, info),
        vector_bits=_vector_bits(flags, root),
        cache_bytes=_cache_bytes(machine.cpus, root) or None,
    )


def _cpuinfo(root: Path) -> dict[str, str]:
    """Return the entries of the first processor in /proc/cpuinfo."""
    lines = (line.partition(":") for line in read_or_empty(root / "proc/cpuinfo").splitlines())
    info: dict[str, str] = {}
    for key, _, value in lines:
        info.setdefault(key.strip(), value.strip())
    return info


def _vendor(info: dict[str, str]) -> str | None:
    if "POWER" in info.get("cpu", ""):
        return "ibm"
    given = info.get("vendor_id") or info.get("CPU implementer") or ""
    return _VENDORS.get(given, given) or None


def _frequency_hz(cpu: Path, info: dict[str, str]) -> float | None:
    """Return the nominal frequency, or the frequency at boot if the kernel does not know the nominal one."""
    for name in ("base_frequency", "cpuinfo_max_freq"):
        text = read_or_empty(cpu / "cpufreq" / name).strip()
        if text.isdecimal() and int(text):
            return int(text) * 1000.0
    # Under a hypervisor there is no cpufreq, and /proc/cpuinfo has the nominal frequency.
    match = re.match(r"\d+(\.\d+)?", info.get("cpu MHz") or info.get("clock") or "")
    return float(match[0]) * 1e6 or None if match else None


def _vector_bits(flags: set[str], root: Path) -> int | None:
    for flag, bits in (("avx512f", 512), ("avx", 256), ("sse2", 128)):
        if flag in flags:
            return bits
    scalable = read_or_empty(root / "proc/sys/abi/sve_default_vector_length").strip()
    if "sve" in flags and scalable.isdecimal():
        return 8 * int(scalable) or None
    return 128 if "asimd" in flags or platform.machine().startswith("ppc64") else None


def _cache_bytes(cpus: tuple[int, ...], root: Path) -> int:
    """Return the total size of the last-level caches of some processors; a shared cache counts once."""
    caches: dict[tuple[int, str], int] = {}
    for cpu in cpus:
        for index in (root / f"sys/devices/system/cpu/cpu{cpu}/cache").glob("index*"):
            level = read_or_empty(index / "level").strip()
            size = re.fullmatch(r"(\d+)([KMG])", read_or_empty(index / "size").strip())
            if level.isdecimal() and size:
                shared = read_or_empty(index / "shared_cpu_list").strip() or str(cpu)
                caches[int(level), shared] = int(size[1]) * _KIB[size[2]] * 1024
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last)
