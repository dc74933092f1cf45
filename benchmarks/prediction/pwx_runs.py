"""Read published runs of pw.x as measurements, from a folder that is not part of this project."""

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from autotune.records.measurement import Measured, Setting
from objectives.base import Metric
from spaces.parameters.parameter import Value

WALL = Metric("wall_s", "s", "minimize", "time")
MATERIALS = ("silicon", "tas2")
GRID = ("fft_dense_x", "fft_dense_y", "fft_dense_z")
_CORES = {"hlrn": 96, "cluster": 20}
_UNSTATED = ("unstated",) * 3
_BUILDS = {
    "si_bench_la_parallel_intel": ("intel", "intel", "mkl"),
    "si_bench_nk_intel_compiler_const_poolsize_hlrn": ("intel", "intel", "mkl"),
    "si_bench_nk_intel_compiler_const_poolsize": ("intel", "intel", "mkl"),
    "si_bench_nprocs_intel_compiler": ("intel", "intel", "mkl"),
    "si_bench_nk_ompi_const_poolsize": ("gcc", "openmpi", "unstated"),
    "si_bench_nprocs": ("gcc", "openmpi", "unstated"),
    "si_bench_nprocs_openblas": ("gcc", "openmpi", "openblas"),
    "si_bench_nprocs_scalapack": ("gcc", "openmpi", "scalapack"),
    "TaS2_bench_la_parallel_intel": ("intel", "intel", "mkl"),
    "TaS2_bench_nk_intel_compiler_const_poolsize": ("intel", "intel", "mkl"),
    "TaS2_bench_nk_ompi_const_poolsize": ("gcc", "openmpi", "unstated"),
    "TaS2_bench_nprocs": ("gcc", "openmpi", "unstated"),
}


def pwx_runs(folder: Path, material: str) -> list[Measured]:
    """Return the runs of pw.x on a material: medians of what ran alike with one run's timers, copies of a file once."""
    timers: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows_of(folder / f"pwx_{material}_timers.csv.gz"):
        if row["wall_s"]:
            timers[row["path"]].setdefault(row["routine"], float(row["wall_s"]))
    runs: dict[_Run, list[tuple[float, str]]] = defaultdict(list)
    seen = set()
    for row in rows_of(folder / f"pwx_{material}.csv.gz"):
        copy = (row["path"].rsplit("/", 1)[1], row["wall_s"], row["cpu_s"])
        if copy in seen or row["path"].startswith("2_"):
            continue
        seen.add(copy)
        runs[_Run.of(material, row)].append((float(row["wall_s"]), row["path"]))
    return [run.measured(found, timers) for run, found in runs.items()]


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a compressed table."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from csv.DictReader(file)


@dataclass(frozen=True)
class _Run:
    material: str
    machine: str
    build: tuple[str, str, str]
    nodes: int
    kpoints: int
    bands: int
    atoms: int
    cutoff_ry: float
    grid: tuple[int, ...]
    chosen: tuple[int, int, int]

    @classmethod
    def of(cls, material: str, row: Mapping[str, str]) -> "_Run":
        nodes, ranks, pools, diag, kpoints, bands, atoms = (int(float(row[name] or 1)) for name in _COUNTS)
        machine = "hlrn" if "hlrn" in row["group"] else "cluster"
        grid = tuple(int(size) for size in row["fft"].split(","))
        build = _BUILDS.get(row["group"], _UNSTATED)
        chosen = (ranks, pools, diag)
        return cls(material, machine, build, nodes, kpoints, bands, atoms, float(row["ecut"]), grid, chosen)

    def measured(self, runs: list[tuple[float, str]], timers: Mapping[str, Mapping[str, float]]) -> Measured:
        facts: dict[str, Value] = {"machine": self.machine, "nodes": self.nodes}
        facts |= {"cores_per_node": _CORES[self.machine]}
        facts |= dict(zip(("compiler", "mpi", "blas"), self.build, strict=True))
        work: dict[str, Value] = {"kpoints": self.kpoints, "bands": self.bands, "atoms": self.atoms}
        work |= {"cutoff_ry": self.cutoff_ry}
        work |= dict(zip(GRID, self.grid, strict=True))
        name = f"{self.material} {self.kpoints} {self.cutoff_ry}"
        setting = Setting("qe", self.machine, name, WALL, facts, work)
        configuration = dict(zip(("np", "npool", "ndiag"), self.chosen, strict=True))
        value = median(seconds for seconds, _ in runs)
        _, nearest = min(runs, key=lambda run: abs(run[0] - value))
        return Measured(setting, configuration, value, runs=len(runs), parts=timers.get(nearest, {}))


_COUNTS = ("nodes", "mpi", "npool", "ndiag", "nk", "nbnd", "nat")
