"""Predict the speed of GROMACS, of which no cost model is known, on machines that are left out.

    python -m benchmarks.prediction.machines --data FOLDER

A folder of the developer's has machines/gromacs_machines.csv.gz: two inputs, 15 machines, of each number of nodes the
best run. All runs of a machine are left out, and 0, 1 or 3 of an input's known after all; judged are numbers of nodes
that another machine has, too. A hash of the machine's name divides them: half 0 chose the method, half 1 tells. Facts
of machines are their makers': cores, GHz and operations of 32 bits a cycle.
"""

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from autotune.performance.run_times.estimate import Estimate
from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.pwx_runs import rows_of
from benchmarks.prediction.run_times import MODELS, Model, Said, Score, line
from objectives.base import Metric

FACTS = {
    "ARCHER": (24, 2.7, 16), "ARCHER2": (128, 2.25, 32), "AMD_Naples": (16, 2.4, 16), "Athena": (28, 2.4, 32),
    "CSD3-Skylake": (32, 2.6, 64), "Cirrus": (36, 2.1, 32), "EPCC-CascadeLake": (48, 2.4, 64), "Grace": (16, 2.4, 32),
    "Isambard": (64, 2.1, 16), "Kathleen": (40, 2.5, 64), "Michael": (24, 2.2, 32), "Myriad": (36, 2.3, 64),
    "Tesseract": (24, 2.1, 32), "Thomas": (24, 2.2, 32), "Young": (40, 2.5, 64),
}  # fmt: skip
# Endings of names that tell builds and options of one machine apart.
_VARIANTS = ("_TDS_meltdown", "_baseline_noconfout", "_baseline", "_confout", "-unpatched")
RATE = Metric("ns_day", "ns/day", "maximize", "rate")


def runs(folder: Path) -> list[Measured]:
    """Return the best run of each input, machine, variant and number of nodes."""
    best: dict[tuple[str, ...], Measured] = {}
    for row in rows_of(folder / "machines" / "gromacs_machines.csv.gz"):
        machine = row["machine"].replace("CSD3Skylake", "CSD3-Skylake")
        for ending in _VARIANTS:
            machine = machine.replace(ending, "")
        if not row["nodes"] or machine not in FACTS or (machine == "Myriad" and int(row["threads"]) > 1):
            continue  # with threads, Myriad used its GPUs
        (cores, ghz, flops), nodes = FACTS[machine], int(row["nodes"])
        node = {"cores_per_node": cores, "cpu_flops": 1e9 * cores * ghz * flops}
        facts = {"nodes": nodes, "cores": nodes * cores, **node}
        setting = Setting("gromacs", machine, row["case"], RATE, facts)
        found = Measured(setting, {"ranks": int(row["ranks"]), "threads": int(row["threads"])}, float(row["value"]))
        key = (row["case"], row["machine"], row["nodes"])
        best[key] = max(best.get(key, found), found, key=lambda one: one.value or 0.0)
    return list(best.values())


def anchor(train: list[Measured], asked: list[Measured], setting: Setting) -> Estimate:
    """Take the geometric mean of the other machines on that number of nodes; known runs are a factor."""
    own = [row for row in train if row.setting.machine == setting.machine]

    def mean(at: Measured) -> float:
        point = (at.setting.workload, at.setting.nodes)
        others = [row for row in train if row.setting.machine != setting.machine]
        alike = [row for row in others if (row.setting.workload, row.setting.nodes) == point]
        return float(np.mean([np.log(row.value or np.nan) for row in alike]))

    off = float(np.mean([np.log(row.value or np.nan) - mean(row) for row in own])) if own else 0.0
    return Estimate(np.array([mean(row) for row in asked]) + off, np.zeros(len(asked)))


WAYS: Mapping[str, Model] = {
    "anchor": anchor,
    **{name: model for name, model in MODELS.items() if name not in {"manual alone", "Amdahl"}},
}


def scores(rows: Sequence[Measured], half: int, known: int, model: Model, seeds: int) -> dict[str, list[Score]]:
    """Return a model's scores on the machines of a half, by input, `known` of the machine's runs being known."""
    found = defaultdict(list)
    for machine in FACTS:
        if hashlib.sha256(machine.encode()).digest()[0] % 2 != half:
            continue
        train = [row for row in rows if row.setting.machine != machine]
        points = {(row.setting.workload, row.setting.nodes) for row in train}
        held = [row for row in rows if row.setting.machine == machine]
        for work in dict.fromkeys(row.setting.workload for row in held):
            own = [row for row in held if (work, row.setting.nodes) in points and row.setting.workload == work]
            for seed in range((seeds if known else 1) if len(own) > known else 0):
                order = np.random.default_rng(seed).permutation(len(own))
                asked = [own[place] for place in sorted(order[known:])]
                answer = model([*train, *(own[place] for place in order[:known])], asked, asked[0].setting)
                found[work].append(Score.of(Said.of([(asked, answer)])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--known", nargs="*", type=int, default=[0, 1, 3])
    parser.add_argument("--halves", nargs="*", type=int, default=[0, 1])
    parser.add_argument("--seeds", type=int, default=3, help="random draws of the known runs")
    given = parser.parse_args()
    rows = runs(given.data)
    for half in given.halves:
        for known in given.known:
            print(f"half {half}, {known} of the machine's runs known:", flush=True)
            for way in given.ways:
                for work, found in scores(rows, half, known, WAYS[way], given.seeds).items():
                    print(f"  {work:12s} {line(way, found)}  [{len(found)}]", flush=True)


if __name__ == "__main__":
    main()
