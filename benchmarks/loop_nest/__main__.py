"""Measure the loop nest on all of its machines: about three minutes on two cores that do nothing else.

    python -m benchmarks.loop_nest [OUT.csv.gz] [--passes 2] [--repeats 3]

Each machine is `gcc` with other flags, pinned to one or two cores of this one; it needs a processor with AVX-512. Every
configuration is run, in another random order in each pass; its time is the least of all. The table that ships was made
on a virtual AMD EPYC (Zen 4) with gcc 12.2.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.loop_nest.machines import MACHINES, LoopMachine
from benchmarks.loop_nest.table import SPACE, TABLE, write
from spaces import Configuration

_SOURCE = Path(__file__).parent / "matmul.c"


def measured_us(
    machine: LoopMachine, program: Path, configurations: list[Configuration], repeats: int, seed: int
) -> np.ndarray:
    """Return the least time of each configuration on a machine in one pass, in microseconds."""
    order = np.random.default_rng(seed).permutation(len(configurations))
    names = [parameter.name for parameter in SPACE.parameters]
    lines = [" ".join(str(configurations[at][name]) for name in names) for at in order]
    cores = sorted(os.sched_getaffinity(0))[: machine.cores]
    printed = subprocess.run(
        [program, str(repeats)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        # Two threads on one core: who waits must not keep the other from working.
        env={**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_DYNAMIC": "false"},
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    ).stdout.split()
    times = np.empty(len(configurations))
    times[order] = [float(word) for word in printed]
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?", default=TABLE)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    if len(os.sched_getaffinity(0)) < max(machine.cores for machine in MACHINES):
        sys.exit("the loop nest needs two cores; nothing was measured")
    configurations = list(SPACE.configurations())
    times_us: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for machine in MACHINES:
            program = Path(folder) / machine.name
            subprocess.run(["gcc", "-std=gnu11", "-fopenmp", *machine.flags, _SOURCE, "-o", program, "-lm"], check=True)
            started = time.perf_counter()
            passes = [
                measured_us(machine, program, configurations, given.repeats, seed) for seed in range(given.passes)
            ]
            times_us[machine.name] = np.min(passes, axis=0).tolist()
            took_s, spread = time.perf_counter() - started, np.ptp(np.log(passes), axis=0)
            print(f"{machine.name:18} {took_s:5.1f} s; passes differ by {np.median(spread):.1%}", end="")
            print(f", in the worst twentieth by {np.quantile(spread, 0.95):.0%} or more", flush=True)
    write(given.out, configurations, times_us)


if __name__ == "__main__":
    main()
