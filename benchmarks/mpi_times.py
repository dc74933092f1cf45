"""What it costs to time a program's calls of MPI: runs of pw.x with the library that does, beside runs without it.

    python -m benchmarks.mpi_times [--pairs 12] [--ranks 2] [--input FILE]

The two runs of a pair are made in turns, in random order. It prints the ratio of their times with its 95 % interval,
how often a rank calls MPI, and all total energies. Nothing else should run on the machine.
"""

import argparse
import os
import random
import sys
from math import exp, log
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.execution.task import run_job
from autotune.machines.this_machine import this_machine
from autotune.statistics.signed_rank import interval, least_pairs
from launchers.local import local_launcher
from objectives import registry
from objectives.base import Context, Measurement, Objective
from objectives.efficiency import library
from objectives.efficiency.objective import EFFICIENCIES, MPI_TIMES, TimedObjective

CONFIDENCE = 0.95


def measured(objective: Objective, ranks: int, folder: Path, cpus: tuple[int, ...]) -> Measurement:
    """Make one run of pw.x."""
    folder.mkdir()
    configuration = {"np": ranks, "npool": 1, "nbgrp": 1, "ntg": 1, "threads": 1}
    return objective.measure(run_job(objective.job(configuration, Context(folder, cpus)), local_launcher()))


def main() -> int:
    """Measure; the exit code is 1 if an answer has changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--input", default="tio2")
    asked = parser.parse_args()
    if asked.pairs < least_pairs(CONFIDENCE):
        parser.error(f"--pairs must be {least_pairs(CONFIDENCE)} or more")
    machine, launcher, order = this_machine(), local_launcher(), random.Random(0)
    with TemporaryDirectory() as name:
        folder = Path(name)
        plain = registry.plan(
            "qe",
            {"input": asked.input},
            machine=machine.facts,
            run_job=lambda job: run_job(job, launcher),
            folder=folder / "plan",
        ).objective
        sides = {"without": plain, "with": TimedObjective(plain, library.made())}
        made: dict[str, list[Measurement]] = {side: [] for side in sides}
        for pair in range(-1, asked.pairs):
            for side in order.sample(list(sides), len(sides)):
                found = measured(sides[side], asked.ranks, folder / f"{pair} {side}", tuple(machine.cpus))
                if pair >= 0:  # the first pair warms up
                    made[side].append(found)
    for metric in ("wall_s", "elapsed_s", "cpu_s"):
        times = {side: [run.metrics[metric] for run in runs] for side, runs in made.items()}
        ratios = [log(a / b) for a, b in zip(times["with"], times["without"], strict=True)]
        middle, low, high = (100.0 * (exp(value) - 1.0) for value in interval(ratios, CONFIDENCE))
        sys.stdout.write(f"{metric}: {middle:+.2f} % ({low:+.2f} to {high:+.2f} %, {asked.pairs} pairs)\n")
    last = made["with"][-1]
    told = last.details[MPI_TIMES]
    sys.stdout.write(
        f"{told['calls'] / told['ranks']:.0f} calls a rank in {told['runtime_s']:.3g} s; "
        + ", ".join(f"{metric.name} {last.metrics[metric.name]:.3f}" for metric in EFFICIENCIES)
        + f"; load {os.getloadavg()[0]:.2f}\n"
    )
    energies = {run.answer.value for runs in made.values() for run in runs if run.answer is not None}
    sys.stdout.write(f"total energies: {', '.join(map(repr, sorted(energies)))}\n")
    return int(len(energies) != 1)


if __name__ == "__main__":
    sys.exit(main())
