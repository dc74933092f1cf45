"""Which of two machines runs a kernel faster, where neither was measured, or where neither ran the kernel.

    python -m benchmarks.prediction.crossover --data FOLDER [--pairs 12]

The data: 37 OpenCL kernels in up to four sizes on 15 devices (the AIWC set of Johnston and others), whose folder has
`opencl_kernels.csv.gz`. Pairs of devices are left out. Facts of the devices are those of their makers' data sheets.
"""

import argparse
import csv
import gzip
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from autotune.performance.crossover.cases import CaseTable
from autotune.performance.crossover.comparison import Answer, Comparison, Ratio
from autotune.records.measurement import Facts, Measured, Setting
from objectives.base import Metric

TIME = Metric("kernel_time_us", "us", kind="time")

# type, vendor, cores, GHz, GB/s, Tflop/s of 32 bits, cache in KiB (the largest level), watts
_SHEETS = {
    "xeon_es-2697v2": ("cpu", "intel", 24, 2.7, 59.7, 0.518, 30720, 130),
    "i7-6700k": ("cpu", "intel", 8, 4.0, 34.1, 0.512, 8192, 91),
    "i5-3350": ("cpu", "intel", 4, 3.1, 25.6, 0.198, 6144, 69),
    "titanx": ("gpu", "nvidia", 3584, 1.417, 480.0, 10.97, 3072, 250),
    "gtx1080": ("gpu", "nvidia", 2560, 1.607, 320.0, 8.87, 2048, 180),
    "gtx1080ti": ("gpu", "nvidia", 3584, 1.48, 484.0, 11.34, 2816, 250),
    "k20c": ("gpu", "nvidia", 2496, 0.706, 208.0, 3.52, 1280, 225),
    "k40c": ("gpu", "nvidia", 2880, 0.745, 288.0, 4.29, 1536, 235),
    "firepro-s9150": ("gpu", "amd", 2816, 0.9, 320.0, 5.07, 1024, 235),
    "tahiti-hd7970": ("gpu", "amd", 2048, 0.925, 264.0, 3.79, 768, 250),
    "hawaii-r9-290x": ("gpu", "amd", 2816, 1.0, 320.0, 5.63, 1024, 290),
    "hawaii-r9-295x2": ("gpu", "amd", 2816, 1.018, 320.0, 5.73, 1024, 500),
    "fiji-furyx": ("gpu", "amd", 4096, 1.05, 512.0, 8.6, 2048, 275),
    "polaris-rx480": ("gpu", "amd", 2304, 1.12, 256.0, 5.83, 2048, 150),
    "knl": ("many-core", "intel", 256, 1.3, 115.2, 5.32, 32768, 215),
}
_FACTS = ("kind", "vendor", "lanes", "clock_hz", "bandwidth", "flops_fp32", "cache", "power_w")
_NOT_FEATURES = 8  # application, kernel, size, device, and the figures


def read(folder: Path) -> list[Measured]:
    """Return the medians of the kernels' times."""
    with gzip.open(folder / "opencl_kernels.csv.gz", "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    features = list(rows[0])[_NOT_FEATURES:]
    found = []
    for row in rows:
        kernel = f"{row['application']}/{row['kernel']}"
        numbers = {name: float(row[name]) for name in features if row[name]}
        facts: Facts = {"kernel": kernel, **numbers}
        machine: Facts = dict(zip(_FACTS, _SHEETS[row["device"]], strict=True))
        setting = Setting("opencl", row["device"], f"{kernel} {row['size']}", TIME, machine, facts)
        found.append(Measured(setting, {}, float(row["kernel_time_us_median"]), runs=int(row["repeats"])))
    return found


@dataclass(frozen=True)
class Judged:
    """Whether a ratio had an interval that held the true one, whether it was answered, and rightly; its width."""

    held: bool | None
    right: bool | None
    width: float


def judge(ratio: Ratio, true: float) -> Judged:
    """Compare a ratio with the measured one, by logarithm."""
    if ratio.speed is None:
        return Judged(None, None, np.nan)
    low, high = log(ratio.speed.low), log(ratio.speed.high)
    answer = ratio.answer
    right = None if answer is Answer.NOT_KNOWN else (answer is Answer.FIRST) == (true > 0.0)
    return Judged(low <= true <= high, right, (high - low) / 2.0)


def without_pair(rows: Sequence[Measured], one: str, other: str, kernels: frozenset[str] | None) -> list[Judged]:
    """Judge all cases of two devices without them, or, with `kernels`, cases of these without these on the two."""
    hidden = {
        row.setting.key
        for row in rows
        if row.setting.machine in {one, other} and (kernels is None or row.setting.workload_facts["kernel"] in kernels)
    }
    whole = CaseTable.of(rows)
    table = CaseTable.of([row for row in rows if row.setting.key not in hidden])
    for name in (one, other):
        table = table.with_machine(name, whole.machine_facts[whole.machines.index(name)])
    asked = [at for at, case in enumerate(table.cases) if kernels is None or case.facts["kernel"] in kernels]
    truth = {case.key: at for at, case in enumerate(whole.cases)}
    judged = []
    for at, ratio in zip(asked, Comparison.of(table, one, other).ratios(asked), strict=True):
        costs = [whole.cost(whole.machines.index(name), truth[table.cases[at].key]) for name in (other, one)]
        if costs[0] is not None and costs[1] is not None:
            judged.append(judge(ratio, costs[0] - costs[1]))
    return judged


def report(name: str, judged: Sequence[Judged], started: float) -> None:
    """Print a line of figures."""
    told = [one for one in judged if one.held is not None]
    answered = [one for one in told if one.right is not None]
    held = np.mean([one.held for one in told]) if told else np.nan
    right = np.mean([one.right for one in answered]) if answered else np.nan
    width = np.exp(np.median([one.width for one in told])) if told else np.nan
    print(
        f"{name}: {len(judged)} ratios; not known {1 - len(answered) / len(judged):.0%}; sign right {right:.1%}; "
        f"in 90 % intervals {held:.1%}, a factor of {width:.2f} wide; {time.perf_counter() - started:.0f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=12, help="how many pairs of devices are left out, at random")
    given = parser.parse_args()
    rows = read(given.data)
    rng = np.random.default_rng(1)
    pairs = list(combinations(_SHEETS, 2))
    chosen = [pairs[at] for at in rng.permutation(len(pairs))[: given.pairs]]
    kernels = sorted({str(row.setting.workload_facts["kernel"]) for row in rows})
    started = time.perf_counter()
    report("both devices new", [one for pair in chosen for one in without_pair(rows, *pair, None)], started)
    some = [frozenset(rng.choice(kernels, len(kernels) // 4, replace=False).tolist()) for _ in chosen]
    known = [one for pair, part in zip(chosen, some, strict=True) for one in without_pair(rows, *pair, part)]
    report("devices known, a quarter of the kernels new to both", known, started)


if __name__ == "__main__":
    main()
