"""Simulated clusters: run times of pw.x on machines without measurements.

The true time is a sum of costs whose rates are drawn around those in the machine's description: speed, memory and
messages within and across nodes differ by factors between builds and machines, and configurations differ by some
percent for reasons that no model knows. Nothing of it comes from the performance model.
"""

from dataclasses import dataclass
from functools import cached_property
from math import exp, log
from typing import Self

import numpy as np
from numpy.typing import NDArray

from autotune.machines.catalogue import find_machine
from autotune.records.measurement import Setting
from objectives.base import Metric
from objectives.qe.placement import place_ranks
from spaces import Space, Value
from spaces.qe import QeFacts, constraints, parameters, rule_facts

Array = NDArray[np.float64]
Rows = NDArray[np.int32]

TIME = Metric("wall_s", "s", kind="time")
CLUSTERS = (
    ("gadi", 25, "oxide"),
    ("gadi", 4, "layers"),
    ("iris", 8, "oxide"),
    ("iris", 16, "silicon"),
    ("hpcac", 32, "molecule"),
    ("claix2018", 8, "silicon"),
    ("aion", 4, "oxide"),
)
"""A described machine, the number of nodes of the study, and the workload."""

WORKLOADS = {
    "oxide": {"kpoints": 20, "bands": 115, "electrons": 192, "atoms": 24, "grid": 96},
    "layers": {"kpoints": 48, "bands": 60, "electrons": 99, "atoms": 9, "grid": 120},
    "silicon": {"kpoints": 413, "bands": 24, "electrons": 32, "atoms": 8, "grid": 64},
    "molecule": {"kpoints": 1, "bands": 320, "electrons": 640, "atoms": 96, "grid": 160},
}

# Standard deviations of logarithms: of rates around the described ones, of the effect peculiar to a configuration, and
# of the runs of a configuration.
_RATES = 0.6
_OWN = 0.01
_NOISE = 0.02
_ITERATIONS = 12.0
_APPLICATIONS = 4.0
_BYTES = 16.0
# Standard deviation of the effect of an allocator or a binding.
_SMALL = 0.04


@dataclass(frozen=True)
class Cluster:
    """Nodes of a machine with a workload: the space, the known facts, and the true rates, which no model sees."""

    name: str
    space: Space
    setting: Setting
    rates: dict[str, float]
    seed: int

    @classmethod
    def of(cls, machine: str, nodes: int, workload: str, seed: int) -> Self:
        """Return a cluster whose true rates follow from the seed."""
        described = find_machine(machine).facts
        size = WORKLOADS[workload]
        per_node = int(described["cores_per_node"])
        facts = QeFacts(
            cores=nodes * per_node,
            cores_per_node=per_node,
            kpoints=size["kpoints"],
            planes=size["grid"],
            scalapack=True,
            threads_by_default=True,
            sockets=2,
        )
        grid = dict.fromkeys(("fft_dense_x", "fft_dense_y", "fft_dense_z"), size["grid"])
        smooth = dict.fromkeys(("fft_smooth_x", "fft_smooth_y", "fft_smooth_z"), size["grid"] * 3 // 4)
        known: dict[str, Value] = {name: value for name, value in size.items() if name != "grid"}
        setting = Setting(
            "qe",
            machine,
            workload,
            TIME,
            {**described, "nodes": nodes, "cores": nodes * per_node},
            {**known, **grid, **smooth},
        )
        rng = np.random.default_rng([seed, nodes, per_node, size["bands"]])
        space = Space(parameters(facts), constraints(facts), rule_facts(facts))
        return cls(f"{machine}, {nodes} nodes, {workload}", space, setting, _rates(described, rng), seed)

    def times_s(self, rows: Rows) -> Array:
        """Return the times, (n,), of value indexes (n, p), without the noise of runs."""
        columns = {name: _numbers(column) for name, column in self.space.columns(rows).items() if _is_number(column)}
        size = {name: float(value) for name, value in self.setting.workload_facts.items()}
        total = _sum_of_costs(columns, size, self.rates, float(self.setting.machine_facts["cores_per_node"]))
        return total * np.exp(self._own(rows))

    def run_s(self, row: Rows, rng: np.random.Generator) -> float:
        """Return the time of a run of value indexes (p,), with noise."""
        return float(self.times_s(row[None, :])[0] * exp(_NOISE * rng.standard_normal()))

    def cores(self, rows: Rows) -> Array:
        """Return the cores, (n,), that runs at value indexes (n, p) hold."""
        columns = self.space.columns(rows)
        held: Array = columns["np"].astype(float) * columns["threads"].astype(float)
        return held

    @cached_property
    def best_s(self) -> float:
        """The least time of all configurations; if they cannot be listed, of many samples and their neighbours."""
        rng = np.random.default_rng(0)
        if self.space.size.value <= 300_000:
            return float(self.times_s(self.space.all_indices()).min())
        rows = self.space.sample_indices(rng, 300_000)
        for _ in range(30):
            times = self.times_s(rows)
            best = rows[np.argsort(times)[:20]]
            near = [one for configuration in self.space.decode(best) for one in self.space.neighbours(configuration)]
            climbed = np.unique(np.concatenate([best, self.space.indices(near)]), axis=0)
            if float(self.times_s(climbed).min()) >= float(times.min()):
                break
            rows = climbed
        return float(times.min())

    def _own(self, rows: Rows) -> Array:
        """Return the effects of words and those peculiar to each configuration, as logarithms (n,)."""
        rng = np.random.default_rng([self.seed, 7])
        own = np.zeros(len(rows))
        for column in self.space.columns(rows).values():
            if not _is_number(column):
                worth = {word: _SMALL * rng.standard_normal() for word in (None, "none", "core", "numa", "socket")}
                own += np.array([worth[word] for word in column.tolist()])
        hashed = (rows.astype(np.int64) * rng.integers(1, 2**31, rows.shape[1])).sum(1) % 1_000_003
        return own + _OWN * np.sin(hashed.astype(float) * 12.9898) * np.sqrt(2.0)


def _rates(described: dict[str, Value], rng: np.random.Generator) -> dict[str, float]:
    per_core = float(described.get("cpu_flops", 2e12)) / float(described["cores_per_node"])
    usual = {
        "flops": 0.15 * per_core,
        "blas": 0.6 * per_core,
        "memory": float(described.get("memory_bandwidth_bytes_per_s", 1.5e11)),
        "network": float(described.get("network_bandwidth_bytes_per_s", 1.25e10)),
        "latency": 2.5e-6,
        "inner latency": 6e-7,
        "start": 0.5,
        "rank start": 1e-3,
        "subspace": 0.08 * per_core,
        "subspace latency": 4e-6,
    }
    rates = {name: value * exp(_RATES * rng.standard_normal()) for name, value in usual.items()}
    rates["threads lose"] = float(rng.uniform(0.02, 0.25))
    rates["band groups lose"] = float(rng.uniform(0.1, 0.5))
    rates["task groups lose"] = float(rng.uniform(0.05, 0.3))
    rates["unshared"] = float(rng.uniform(0.003, 0.03))
    return rates


def _sum_of_costs(columns: dict[str, Array], size: dict[str, float], rates: dict[str, float], per_node: float) -> Array:
    ranks, pools = columns["np"], columns.get("npool", np.ones(1))
    groups, tasks = columns.get("nbgrp", np.ones(1)), columns.get("ntg", np.ones(1))
    threads = columns.get("threads", np.ones(1))
    pool = ranks / pools
    group = pool / groups
    nodes = np.ceil(ranks * threads / per_node)
    at = place_ranks(ranks, pools + 0.0 * ranks, threads + 0.0 * ranks, nodes, np.full(len(ranks), per_node))
    speed_up = threads / (1.0 + rates["threads lose"] * (threads - 1.0))
    mine = np.ceil(size["kpoints"] / pools) * _ITERATIONS
    smooth = size["fft_smooth_z"]
    points, dense = smooth**3, size["fft_dense_z"] ** 3
    bands = np.ceil(size["bands"] / groups)
    waves = points / 16.0
    # Transforms: planes that do not divide leave ranks idle; task groups transform several bands on fewer ranks each.
    sharing = np.maximum(group / tasks, 1.0)
    planes = np.ceil(smooth / sharing) / smooth / tasks
    transforms = mine * bands * _APPLICATIONS * 5.0 * points * log(points) / log(2.0)
    compute = transforms * planes / (rates["flops"] * speed_up) * (1.0 + rates["task groups lose"] * np.log2(tasks))
    streamed = transforms / 5.0 / 3.0 * _BYTES / group * at.ranks_of_node / rates["memory"]
    volume = mine * bands * _APPLICATIONS * points * _BYTES / group
    across, inside = at.share, 1.0 - at.share
    # A node's ranks share its network.
    exchange = volume * (across * at.ranks_of_node / rates["network"] + inside * at.ranks_of_node / rates["memory"])
    messages = mine * bands * _APPLICATIONS / tasks * np.maximum(sharing - 1.0, 0.0)
    latency = messages * (across * rates["latency"] + inside * rates["inner latency"])
    blas = mine * 8.0 * size["bands"] ** 2 * waves / pool / (rates["blas"] * speed_up)
    blas *= 1.0 + rates["band groups lose"] * np.log2(groups)
    grid = np.nan_to_num(columns.get("ndiag", np.ones(1)) + 0.0 * ranks, nan=1.0)
    unset = np.isnan(columns["ndiag"]) if "ndiag" in columns else np.zeros(len(ranks), bool)
    grid = np.where(unset, np.maximum(np.floor(np.sqrt(group / 2.0)), 1.0) ** 2, grid)
    order = 2.0 * size["bands"]
    subspace = mine * 4.0 * 10.0 * order**3 / grid / rates["subspace"]
    subspace += mine * (grid > 1.0) * order * np.sqrt(grid) * rates["subspace latency"] * (1.0 + 4.0 * across)
    reductions = mine * 40.0 * np.log2(pool + 1.0) * rates["latency"] * (1.0 + across * at.span)
    reductions += mine * 8.0 * size["bands"] ** 2 * 16.0 / rates["network"] * (pool > 1.0)
    unshared = (
        rates["unshared"] * _ITERATIONS * dense * 5.0 * 40.0 / (rates["flops"] * speed_up) / np.minimum(group, 4.0)
    )
    between = _ITERATIONS * dense * 8.0 * np.log2(pools + 1.0) / group / rates["network"]
    start = rates["start"] + rates["rank start"] * ranks
    total: Array = compute + streamed + exchange + latency + blas + subspace + reductions + unshared + between + start
    return total


def _is_number(column: NDArray[np.generic]) -> bool:
    return column.dtype != object


def _numbers(column: NDArray[np.generic]) -> Array:
    return column.astype(float)
