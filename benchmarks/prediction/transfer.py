"""Test the transfer of measurements to an unknown machine: leave one machine out in tables of one program.

    python -m benchmarks.prediction.transfer [--data FOLDER] [--shares 1,0.33] [--seeds 3] [--no-search] [--budget 200]

Two spaces: `benchmarks/loop_nest`, and `convolution/*.json.gz` in FOLDER (caches of Kernel Tuner, one a
GPU; they are not part of this project). For each machine five proposals are made from the other machines' tables (or
random shares of them), and judged by its own: best time / time of the first and of the best of five, beside simpler
ways. Then studies are simulated, with a warm start and without: trials to within 5 % of the optimum.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")


import numpy as np
import optuna
from optuna.trial import TrialState

from autotune.machines.catalogue import find_machine
from autotune.performance.model import Fields
from autotune.performance.transfer.model import Transfer, transfer
from autotune.performance.transfer.sources import sources
from autotune.records.measurement import Measured, Setting
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.suggest import ask
from benchmarks.loop_nest.machines import MACHINES as LOOP_MACHINES
from benchmarks.loop_nest.table import load_loop_nest
from benchmarks.measured_tables import load_tables
from benchmarks.prediction.baselines import BASELINES
from benchmarks.search.problem import Problem
from objectives.base import Metric

GPUS = {
    "A100": "nvidia-a100",
    "A4000": "nvidia-a4000",
    "A6000": "nvidia-a6000",
    "MI250X": "amd-mi250x",
    "W6600": "amd-w6600",
    "W7800": "amd-w7800",
}
TRIES = 5
NEAR = 1.05
TIME = Metric("time_s", "s", kind="time")


@dataclass(frozen=True)
class Machine:
    """A machine with its table, as a problem of search and as measurements."""

    name: str
    problem: Problem
    setting: Setting

    def measured(self, share: float, rng: np.random.Generator) -> list[Measured]:
        count = max(1, round(share * self.problem.size))
        chosen = rng.permutation(self.problem.size)[:count] if share < 1.0 else np.arange(self.problem.size)
        configurations = self.problem.space.decode(self.problem.rows[chosen])
        values = self.problem.values[chosen].tolist()
        return [
            Measured(self.setting, one, None if np.isnan(value) else value, failure="failed" if np.isnan(value) else "")
            for one, value in zip(configurations, values, strict=True)
        ]

    def efficiency(self, row: Sequence[int]) -> float:
        value = self.problem.values[self.problem.places[tuple(row)]]
        return 0.0 if np.isnan(value) else float(self.problem.optimum / value)


def load_gpus(folder: Path) -> list[Machine]:
    found = []
    for table in load_tables(folder):
        gpu = table.name.rpartition(" ")[2]
        if gpu in GPUS:
            name = GPUS[gpu]
            setting = Setting("convolution", name, "convolution", TIME, find_machine(name).facts)
            found.append(Machine(gpu, Problem.of(table), setting))
    return found


def load_loops() -> list[Machine]:
    return [
        Machine(one.name, Problem.of(table), Setting("loop_nest", one.name, "192", TIME, one.facts))
        for one, table in zip(LOOP_MACHINES, load_loop_nest(), strict=True)
    ]


def default_first(machine: Machine) -> np.ndarray:
    rows = machine.problem.rows
    default = machine.problem.space.indices([machine.problem.space.default()])
    return np.ascontiguousarray(np.concatenate([default, rows[(rows != default).any(axis=1)]]))


def leave_out(machine: Machine, known: Sequence[Measured]) -> tuple[Transfer, Fields]:
    found = sources(machine.problem.space, machine.setting, known)
    told = transfer(machine.problem.space, machine.setting, found, default_first(machine), TRIES)
    return told, Fields(tuple(found))


def others(machines: Sequence[Machine], out: Machine, share: float, seed: int) -> list[Measured]:
    rng = np.random.default_rng(seed)
    return [one for machine in machines if machine is not out for one in machine.measured(share, rng)]


Reached = dict[str, list[tuple[float, float]]]
"""The efficiency of the first proposal and of the best of five, for each way and machine."""


def proposals(machines: Sequence[Machine], share: float, seed: int) -> Reached:
    print(f"\n{share:.0%} of each other table, seed {seed}: best / time of the first proposal, of the best of five")
    names = ["ours", *BASELINES]
    rows: Reached = {name: [] for name in names}
    print(f"{'machine':18} {'default':>8} " + " ".join(f"{name:>18}" for name in names))
    for machine in machines:
        known = others(machines, machine, share, seed)
        started = time.perf_counter()
        told, _ = leave_out(machine, known)
        took_s = time.perf_counter() - started
        chosen = {"ours": told.rows[list(told.proposals)]}
        candidates = default_first(machine)
        for name, baseline in BASELINES.items():
            scores = baseline(known, machine.problem.space, candidates, machine.setting)
            assert scores is not None
            chosen[name] = candidates[np.argsort(scores, kind="stable")[:TRIES]]
        cells = []
        for name in names:
            reached = [machine.efficiency(row.tolist()) for row in chosen[name]]
            rows[name].append((reached[0], max(reached)))
            cells.append(f"{reached[0]:>11.2f} {max(reached):>6.2f}")
        default = machine.efficiency(candidates[0].tolist())
        real, said = rows["ours"][-1][0] / default, told.speed_up(told.proposals[0])
        print(f"{machine.name:18} {default:>8.2f} " + " ".join(cells), end="")
        print(f"   gain {real:.2f}, said {said}; {took_s:.1f} s", flush=True)
    return rows


def summary(seeds: Sequence[Reached]) -> None:
    """Print the median over seeds of each figure, with the least and the greatest if there are several."""
    print(f"{'':18} {'first: median':>20} {'least':>20} {'best of five: mean':>20} {'least':>20} {'within 10 %':>20}")
    for name in seeds[0]:
        figures = []
        for rows in seeds:
            firsts, bests = np.array(rows[name]).T
            figures.append((median(firsts), min(firsts), np.mean(bests), min(bests), np.mean(bests >= 1 / 1.1)))
        columns = np.array(figures).T
        cells = [
            f"{np.median(column):.2f}" + (f" ({column.min():.2f} to {column.max():.2f})" if len(seeds) > 1 else "")
            for column in columns
        ]
        print(f"{name:18} " + " ".join(f"{cell:>20}" for cell in cells), flush=True)


def searched(machine: Machine, seed: int, budget: int, warm: Callable[[ValidSetSampler], None] | None) -> int | None:
    """Search; return the number of trials to within 5 % of the optimum, or None if the budget is not enough."""
    problem = machine.problem
    sampler = ValidSetSampler(problem.space, seed=seed)
    if warm is not None:
        warm(sampler)
    study = optuna.create_study(sampler=sampler)
    for number in range(budget):
        trial = ask(study, problem.space)
        (row,) = problem.space.indices([trial.params]).tolist()
        value = problem.values[problem.places[tuple(row)]]
        if np.isnan(value):
            study.tell(trial, state=TrialState.FAIL)
        else:
            study.tell(trial, float(value))
            if value <= NEAR * problem.optimum:
                return number + 1
    return None


def searches(machines: Sequence[Machine], seeds: int, budget: int) -> None:
    print(f"\ntrials to within {NEAR - 1:.0%} of the optimum, cold and warm, {seeds} seeds (>: not within {budget})")
    every: dict[str, list[int]] = {"cold": [], "warm": []}
    for machine in machines:
        told, fields = leave_out(machine, others(machines, machine, 1.0, 0))
        predicted = machine.problem.space.decode(told.rows[list(told.proposals)])

        def warm(sampler: ValidSetSampler, predicted: list = predicted, fields: Fields = fields) -> None:
            sampler.start_with(predicted)
            sampler.set_prior_mean(fields)

        line = [f"{machine.name:8}"]
        for name, prepare in (("cold", None), ("warm", warm)):
            counts = [searched(machine, seed, budget, prepare) for seed in range(seeds)]
            every[name] += [budget + 1 if count is None else count for count in counts]
            line.append(f"{name} {', '.join(f'>{budget}' if count is None else str(count) for count in counts)}")
        print("; ".join(line), flush=True)
    for name, counts in every.items():
        missed = sum(count > budget for count in counts)
        print(f"{name}: median {median(counts):g}, mean {np.mean(counts):.0f}, not reached {missed}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--shares", default="1,0.33", help="shares of the other tables that are known")
    parser.add_argument("--seeds", type=int, default=3, help="random shares, and studies of each machine")
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--no-search", action="store_true")
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    spaces = {"loop nest": load_loops()}
    if given.data is not None:
        spaces["convolution"] = load_gpus(given.data)
        if len(spaces["convolution"]) < 4:
            sys.exit(f"{given.data} does not hold the tables convolution/*.json.gz; nothing was measured")
    for name, machines in spaces.items():
        print(f"\n== {name}: {len(machines)} machines, {machines[0].problem.size} configurations")
        for share in map(float, given.shares.split(",")):
            summary([proposals(machines, share, seed) for seed in range(1 if share == 1.0 else given.seeds)])
        if not given.no_search:
            searches(machines, given.seeds, given.budget)


if __name__ == "__main__":
    main()
