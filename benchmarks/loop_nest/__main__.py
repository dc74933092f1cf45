"""Measure the loop nest on all of its machines; takes about three minutes on two idle cores.

    python -m benchmarks.loop_nest [OUT.csv.gz] [--passes 2] [--repeats 3]

A machine is emulated by flags of `gcc` and by pinning to one or two cores; this needs a processor with AVX-512. Each
pass runs every configuration in another random order, and the least time of a configuration counts. The shipped table
was recorded on a virtual AMD EPYC (Zen 4) with gcc 12.2.
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


def measure_us(
    machine: LoopMachine, program: Path, configurations: list[Configuration], repeats: int, seed: int
) -> np.ndarray:
    """Measure the least time of each configuration on a machine in one pass, in microseconds."""
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
        # With two threads on one core, a thread that spins at a barrier would keep the other from working.
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
            passes = [measure_us(machine, program, configurations, given.repeats, seed) for seed in range(given.passes)]
            times_us[machine.name] = np.min(passes, axis=0).tolist()
            took_s, spread = time.perf_counter() - started, np.ptp(np.log(passes), axis=0)
            print(f"{machine.name:18} {took_s:5.1f} s; passes differ by {np.median(spread):.1%}", end="")
            print(f", in the worst twentieth by {np.quantile(spread, 0.95):.0%} or more", flush=True)
    write(given.out, configurations, times_us)


if __name__ == "__main__":
    main()
