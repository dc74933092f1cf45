"""Read published runs of GROMACS on many machines, from a folder that is not part of this project.

A hash of a machine's name says whether it chose the method or only tells of it.
"""

import hashlib
from pathlib import Path

from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.pwx_runs import rows_of
from objectives.base import Metric

RATE = Metric("ns_day", "ns/day", "maximize", "rate")
INPUTS = ("1400k-atoms", "large")
# Cores of a node, GHz, and operations of 32 bits a cycle and core: the makers' pages.
_MACHINES = {
    "ARCHER": (24, 2.7, 16), "ARCHER2": (128, 2.25, 32), "AMD_Naples": (16, 2.4, 16), "Athena": (28, 2.4, 32),
    "CSD3-Skylake": (32, 2.6, 64), "Cirrus": (36, 2.1, 32), "EPCC-CascadeLake": (48, 2.4, 64), "Grace": (16, 2.4, 32),
    "Isambard": (64, 2.1, 16), "Kathleen": (40, 2.5, 64), "Michael": (24, 2.2, 32), "Myriad": (36, 2.3, 64),
    "Tesseract": (24, 2.1, 32), "Thomas": (24, 2.2, 32), "Young": (40, 2.5, 64),
}  # fmt: skip
CHOOSING_MACHINES = frozenset(name for name in _MACHINES if not hashlib.sha256(name.encode()).digest()[0] % 2)
# Endings of names that tell builds and options of one machine apart.
_VARIANTS = ("_TDS_meltdown", "_baseline_noconfout", "_baseline", "_confout", "-unpatched")


def gromacs_runs(folder: Path, case: str) -> list[Measured]:
    """Return each variant's best run on each number of nodes that several machines have."""
    best: dict[tuple[str, str], Measured] = {}
    for row in rows_of(folder / "gromacs_machines.csv.gz"):
        machine = row["machine"].replace("CSD3Skylake", "CSD3-Skylake")
        for ending in _VARIANTS:
            machine = machine.replace(ending, "")
        if row["case"] != case or not row["nodes"] or machine not in _MACHINES:
            continue
        if machine == "Myriad" and int(row["threads"]) > 1:
            continue  # with threads, it used its GPUs
        (cores, ghz, flops), nodes = _MACHINES[machine], int(row["nodes"])
        facts = {
            "nodes": nodes,
            "cores_per_node": cores,
            "cores": nodes * cores,
            "cpu_flops": 1e9 * cores * ghz * flops,
        }
        setting = Setting("gromacs", machine, case, RATE, facts)
        found = Measured(setting, {"ranks": int(row["ranks"]), "threads": int(row["threads"])}, float(row["value"]))
        key = (row["machine"], row["nodes"])
        best[key] = max(best.get(key, found), found, key=lambda one: one.value or 0.0)
    rows = list(best.values())
    machines = {
        one.setting.nodes: {row.setting.machine for row in rows if row.setting.nodes == one.setting.nodes}
        for one in rows
    }
    return [row for row in rows if len(machines[row.setting.nodes]) > 1]
