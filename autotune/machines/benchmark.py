"""Measure a machine in under a minute: memory, arithmetic, messages, disk.

The rate of n cores is measured with n processes, each pinned to a core of its own like the ranks of a job.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import psutil

from autotune.machines.description import MachineDescription, MeasuredFigures
from autotune.machines.disk import FILE_BYTES, DiskError, disk_rates
from autotune.machines.figure import Figure, best_figure
from autotune.machines.pingpong import PingPongError, message_figures
from autotune.machines.software import BLAS_LIBRARIES
from autotune.machines.workers import WorkerError, Workers
from launchers.mpi import MpiFlavour

MIB = 2**20
# Above this many runnable processes a core the machine is shared, and a note says so.
BUSY_LOAD_A_CORE = 0.3
# The rule of STREAM (McCalpin, 1995): each array at least four times the size of the last caches together.
_ARRAY_CACHES = 4
_ARRAY_LEAST_BYTES, _ARRAY_MOST_BYTES = 32 * MIB, 1024 * MIB

Say = Callable[[str], None]


@dataclass(frozen=True)
class Sizes:
    """How much work each measurement does.

    Attributes:
        array_bytes: The size of each array that is copied; None derives it from the caches.
        order: Of the matrices: large enough for arithmetic to dominate, small enough for slow libraries.
        duration_s: The length of one repeat of a rate.
        repeats: Of each rate, and of the disk.
        file_bytes: The size of the file that the disk is measured with.
        patience_s: The time limit of memory, and that of arithmetic.
    """

    array_bytes: int | None = None
    order: int = 768
    duration_s: float = 0.3
    repeats: int = 3
    file_bytes: int = FILE_BYTES
    patience_s: float = 40.0


@dataclass(frozen=True)
class FigureBenchmark:
    """The parts of the machine to measure.

    Attributes:
        cpus: The hardware threads to use, one of each core.
        folder: A folder on the disk to measure.
        flavour: The MPI that starts ranks; None if none works here.
        libraries: BLAS libraries, the preferred one first.
    """

    cpus: tuple[int, ...]
    folder: Path
    flavour: MpiFlavour | None = None
    libraries: tuple[str, ...] = BLAS_LIBRARIES


@dataclass
class _Results:
    """The figures and notes so far."""

    values: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, figures: Mapping[str, Figure]) -> None:
        self.values |= {name: figure.value for name, figure in figures.items()}
        self.spread |= {name: round(figure.spread, 4) for name, figure in figures.items()}


def measure(
    machine: MachineDescription, bench: FigureBenchmark, say: Say, sizes: Sizes | None = None
) -> MeasuredFigures:
    """Measure the machine that this process runs on; report each figure through `say`.

    A figure that cannot be measured is left out, and a note gives the reason. No process or file remains, even after
    an error or an interrupt.
    """
    sizes = sizes or Sizes()
    results = _Results()
    load = _load()
    if load > BUSY_LOAD_A_CORE * len(bench.cpus):
        results.notes.append(f"the machine was busy: {load:.2g} processes ran on {len(bench.cpus)} cores before")
    tables: dict[str, dict[str, float]] = {}
    library = ""
    try:
        tables["memory_bandwidth_by_cores"] = _memory(machine, bench, sizes, results, say)
    except WorkerError as error:
        results.notes.append(f"no memory bandwidth: {error}")
    try:
        tables["blas_flops_by_cores"], library = _arithmetic(bench, sizes, results, say)
    except WorkerError as error:
        results.notes.append(f"no floating-point rate: {error}")
    say("messages between ranks ...")
    try:
        results.add(message_figures(bench.flavour, bench.cpus))
    except PingPongError as error:
        results.notes.append(f"no figures of messages between ranks: {error}")
    say("disk ...")
    try:
        results.add(disk_rates(bench.folder, sizes.file_bytes, sizes.repeats))
    except DiskError as error:
        results.notes.append(f"no figures of the disk: {error}")
    return MeasuredFigures.model_validate(
        {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "blas": library or None,
            "load_1m": round(load, 2),
            **{name: float(f"{value:.5g}") for name, value in results.values.items()},
            **tables,
            "spread": results.spread,
            "notes": results.notes or None,
        }
    )


def core_counts(cores: int) -> tuple[int, ...]:
    """Return the numbers of cores to measure: 1, 2, 4, ... and all."""
    powers = [2**power for power in range(cores.bit_length()) if 2**power < cores]
    return (*powers, cores)


def _load() -> float:
    """Return the mean number of running and runnable processes in the last minute; 0 if it is unknown."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 0.0


def _memory(
    machine: MachineDescription, bench: FigureBenchmark, sizes: Sizes, results: _Results, say: Say
) -> dict[str, float]:
    with Workers(bench.cpus, patience_s=sizes.patience_s) as workers:
        table = {}
        for cores in core_counts(len(bench.cpus)):
            size = sizes.array_bytes or _array_bytes(machine.cpu.cache_bytes or 0, cores, results)
            workers.prepare(cores, {"prepare": "copy", "bytes": size})
            figure = best_figure([workers.rate(cores, sizes.duration_s) for _ in range(sizes.repeats)])
            table[str(cores)] = float(f"{figure.value:.5g}")
            say(f"memory bandwidth of {_cores(cores)}: {figure.value / 1e9:.4g} GB/s")
            results.add(_figures_by_name(cores, len(bench.cpus), figure, "memory_bandwidth{}_bytes_per_s"))
    return table


def _arithmetic(bench: FigureBenchmark, sizes: Sizes, results: _Results, say: Say) -> tuple[dict[str, float], str]:
    with Workers(bench.cpus, patience_s=sizes.patience_s) as workers:
        table, library = {}, ""
        task = {"prepare": "blas", "order": sizes.order, "libraries": list(bench.libraries)}
        # Other numbers of cores are interpolated between these: cores share no arithmetic, only power and caches.
        for cores in sorted({1, len(bench.cpus)}):
            library = str(workers.prepare(cores, task)[0]["library"])
            figure = best_figure([workers.rate(cores, sizes.duration_s) for _ in range(sizes.repeats)])
            table[str(cores)] = float(f"{figure.value:.5g}")
            say(f"floating-point rate of {_cores(cores)}: {figure.value / 1e9:.4g} Gflop/s ({library})")
            results.add(_figures_by_name(cores, len(bench.cpus), figure, "blas_flops{}"))
    if library == "numpy's own":
        results.notes.append("no BLAS library of the system was found: the floating-point rate is that of numpy's own")
    return table, library


def _figures_by_name(cores: int, most: int, figure: Figure, pattern: str) -> dict[str, Figure]:
    """Return a figure by its name for one core, for all cores, or by both names on a machine with one core."""
    names = [pattern.format("_core")] * (cores == 1) + [pattern.format("")] * (cores == most)
    return dict.fromkeys(names, figure)


def _array_bytes(cache_bytes: int, cores: int, results: _Results) -> int:
    """Return the size of each of a process's two arrays: larger than the caches, all in a quarter of free memory."""
    wanted = max(_ARRAY_LEAST_BYTES, _ARRAY_CACHES * cache_bytes // cores)
    allowed = min(_ARRAY_MOST_BYTES, psutil.virtual_memory().available // 4 // (2 * cores))
    if allowed < wanted:
        note = f"arrays of {allowed // MIB} MiB on {_cores(cores)} are less than {_ARRAY_CACHES} times the caches"
        results.notes.append(f"memory bandwidth: {note}")
    return max(MIB, min(wanted, allowed))


def _cores(cores: int) -> str:
    return "1 core" if cores == 1 else f"{cores} cores"
