"""Detect the accelerators of this machine with nvidia-smi and the lists of the kernel's drivers."""

import csv
import re
from collections import Counter
from pathlib import Path

from autotune.machines.description import Gpu
from autotune.machines.this_machine import read_or_empty
from launchers.software.ask import ask

_PATIENCE_S = 10.0
# Older drivers do not know compute_cap, and refuse the whole query because of it.
_QUERIES = (("name", "memory.total", "compute_cap"), ("name", "memory.total"))
# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": shared memory of a multiprocessor.
_SHARED_KIB = {
    "3.5": 48,
    "3.7": 112,
    "6.0": 64,
    "6.1": 96,
    "7.0": 96,
    "7.5": 64,
    "8.0": 164,
    "8.6": 100,
    "8.9": 100,
    "9.0": 228,
    "10.0": 228,
    "12.0": 100,
}
_ARCHITECTURES = {"3": "kepler", "5": "maxwell", "6": "pascal", "7": "volta", "8": "ampere", "9": "hopper"}
_NOT_BY_MAJOR = {"7.5": "turing", "8.9": "ada", "10.0": "blackwell", "12.0": "blackwell"}


def find_gpus(*, programs: bool, root: Path = Path("/")) -> tuple[Gpu, str]:
    """Return the accelerators and the source of that knowledge; both are empty if no accelerator is found.

    Args:
        programs: Whether to start nvidia-smi, which knows more than the driver's files.
        root: The folder with `proc` and `sys`.
    """
    if programs and (gpu := _from_nvidia_smi()) is not None:
        return gpu, "nvidia-smi"
    if (gpu := _of_nvidia_driver(root / "proc/driver/nvidia/gpus")) is not None:
        return gpu, "/proc/driver/nvidia"
    if (gpu := _of_amd_driver(root / "sys/class/kfd/kfd/topology/nodes")) is not None:
        return gpu, "/sys/class/kfd"
    return Gpu(), ""


def read_nvidia_smi(text: str) -> Gpu | None:
    """Read what `nvidia-smi --query-gpu=name,memory.total,compute_cap --format=csv,noheader,nounits` printed.

    Its memory is in MiB. If several models are listed, the result is the most frequent one; None if none is listed.
    """
    try:
        rows = [tuple(cell.strip() for cell in row) for row in csv.reader(text.splitlines()) if len(row) >= 2]
    except csv.Error:
        return None
    if not rows:
        return None
    (row, count), *_ = Counter(rows).most_common()
    model, memory_mib = row[0], row[1]
    capability = row[2] if len(row) > 2 and re.fullmatch(r"\d+\.\d+", row[2]) else ""
    shared_kib = _SHARED_KIB.get(capability)
    return Gpu(
        count=count,
        vendor="nvidia",
        model=model or None,
        architecture=_NOT_BY_MAJOR.get(capability) or _ARCHITECTURES.get(capability.partition(".")[0]),
        memory_bytes=int(memory_mib) * 2**20 if re.fullmatch("[0-9]{1,12}", memory_mib) and int(memory_mib) else None,
        lanes=32,
        shared_memory_bytes=shared_kib * 1024 if shared_kib else None,
        registers=65536 if shared_kib else None,
    )


def _from_nvidia_smi() -> Gpu | None:
    for fields in _QUERIES:
        try:
            done = ask(["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"], _PATIENCE_S)
        except OSError:
            return None
        if done.exit_code == 0 and (gpu := read_nvidia_smi(done.text)) is not None:
            return gpu
    return None


def _of_nvidia_driver(folder: Path) -> Gpu | None:
    texts = [read_or_empty(file) for file in sorted(folder.glob("*/information"))]
    models = [match[1].strip() for text in texts if (match := re.search(r"^Model:\s*(.+)$", text, re.MULTILINE))]
    if not models:
        return None
    (model, count), *_ = Counter(models).most_common()
    return Gpu(count=count, vendor="nvidia", model=model, lanes=32)


def _of_amd_driver(folder: Path) -> Gpu | None:
    gpus = []
    for node in sorted(folder.glob("*")):
        properties = _properties(node / "properties")
        if properties.get("simd_count"):
            banks = [_properties(bank).get("size_in_bytes", 0) for bank in node.glob("mem_banks/*/properties")]
            gpus.append(_amd_gpu(properties, max(banks, default=0)))
    if not gpus:
        return None
    (gpu, count), *_ = Counter(gpus).most_common()
    return gpu.model_copy(update={"count": count})


def _amd_gpu(properties: dict[str, int], memory_bytes: int) -> Gpu:
    return Gpu(
        vendor="amd",
        architecture=gfx_name(properties.get("gfx_target_version", 0)) or None,
        memory_bytes=memory_bytes or None,
        compute_units=properties["simd_count"] // (properties.get("simd_per_cu") or 1) or None,
        lanes=properties.get("wave_front_size") or None,
        shared_memory_bytes=properties.get("lds_size_in_kb", 0) * 1024 or None,
    )


def gfx_name(version: int) -> str:
    """Return AMD's name of an architecture from the driver's number: 90010 is `gfx90a`; empty for the number 0."""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}" if major else ""


def _properties(file: Path) -> dict[str, int]:
    words = (line.split() for line in read_or_empty(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}
