"""How long a prediction takes: 10,000 measurements of five machines, 10^5 candidates.

    python -m benchmarks.prediction.predicting [--measurements 10000]

The space is that of `proposing.py`, the values are a smooth function of the configuration, the machine and noise.
"""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


import numpy as np

from autotune.performance.model import PerformanceModel
from autotune.records.measurement import Measured, Setting
from benchmarks.proposing import SPACE, value_of
from objectives.base import Metric

TIME = Metric("time_s", "s", kind="time")
MACHINES = 5


def setting(number: int) -> Setting:
    facts = {
        "gpu_vendor": "ab"[number % 2],
        "cores": 16 * (number + 1),
        "gpu_bandwidth_bytes_per_s": 1e11 * (number + 2),
    }
    return Setting("gemm", f"machine {number}", "4096", TIME, facts, {"n": 4096})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=int, default=10_000)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    known = [
        Measured(setting(number), one, value_of(dict(one), rng) * (1.0 + 0.1 * number))
        for number in range(MACHINES)
        for one in SPACE.sample(rng, given.measurements // MACHINES)
    ]
    SPACE.size  # noqa: B018  the valid set is found once
    rules = tuple(constraint.rule for constraint in SPACE.constraints)
    started, cpu = time.perf_counter(), time.process_time()
    found = PerformanceModel(tuple(known), rules).best(SPACE, setting(MACHINES), 5)
    took_s, cpu_s = time.perf_counter() - started, time.process_time() - cpu
    print(f"{len(known):,} measurements, {SPACE.size.value:,} candidates: {took_s:.1f} s, {cpu_s:.1f} s of CPU")
    print(f"first: {dict(found.proposals[0].configuration)}, {found.proposals[0].speed_up}")


if __name__ == "__main__":
    main()
