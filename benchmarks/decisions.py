"""Count right decisions in decision tables by runs spent, against random runs, on tables with known true times.

    python benchmarks/decisions.py                    # synthetic tables that were not used to choose the method
    python benchmarks/decisions.py --tables 8 --seeds 3 --choose

A synthetic table has contexts (operation, ranks, size) and settings (algorithm, segment). Each algorithm costs time by
Hockney's model, with its own proportion of latency and bytes, so the best one changes with ranks and size; the noise of
runs is 5 to 20 %. A method spends runs, then chooses a setting for each cell. "of the oracle" is the geometric mean
over the cells of the chosen setting's true time over the least true time; "worst" is the greatest true time over the
default's. The rules of choice:

guess   the setting that the model expects to be best
sure    the same where the model is sure, else the default
pairs   the guess where eight fresh pairs of runs confirm it against the default, else the default; `fresh` counts
        these runs
"""

import argparse
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from math import exp, log
from statistics import fmean

import numpy as np
from optuna.study import StudyDirection

from autotune.search.base import History, Rows
from autotune.search.decisions.cell_model import Kernels, fit_cell_model
from autotune.search.decisions.choices import GUESS, choose_settings
from autotune.search.decisions.sampler import DecisionSampler
from autotune.statistics.false_coverage import intervals
from autotune.storage.observation import Observation
from spaces import Choice, Constraint, Integer, Parameter, Space, Value

CONFIDENCE = 0.95
PAIRS = 8
RULES = ("guess", "sure", "pairs")
CHOOSE, REPORT = 1000, 2000

Key = tuple[Value, ...]

Score = tuple[float, float, float, int]
"""Share of right cells, ratio to the oracle, worst cell over the default, and number of fresh runs."""


@dataclass(frozen=True)
class Table:
    """Recorded runs and true time of every setting in every context; `over` names the parameters of the context."""

    space: Space
    over: tuple[str, ...]
    runs: dict[Key, list[float]]
    true: dict[Key, float]

    def key(self, configuration: dict[str, Value]) -> Key:
        """Return the values of a configuration, in the order of the parameters."""
        return tuple(configuration[parameter.name] for parameter in self.space.parameters)


def synthetic(seed: int) -> Table:
    """Return a table whose best algorithm changes with size and ranks."""
    rng = np.random.default_rng(seed)
    noise = rng.uniform(0.05, 0.2)
    operations, ranks = ("allreduce", "bcast"), (2, 4, 8, 16, 32)
    sizes = tuple(2**power for power in range(3, 23))
    algorithms = ("fixed", "linear", "binomial", "ring", "recursive", "segmented")
    segments = (4096, 65536)
    over = ("operation", "ranks", "bytes")
    parameters: list[Parameter] = [
        Choice("operation", operations, default=operations[0]),
        Integer("ranks", ranks, default=ranks[0]),
        Integer("bytes", sizes, default=sizes[0]),
        Choice("algorithm", algorithms, default="fixed"),
        Integer("segment", segments, default=segments[0]),
    ]
    rule = "algorithm in ['ring', 'segmented'] or segment == 4096"
    space = Space(parameters, [Constraint("segments", rule, "no segments there")])
    start, per_byte = rng.uniform(0.5, 3.0), 10.0 ** rng.uniform(-4.0, -3.0)
    shares = {
        (operation, name): (rng.lognormal(0.0, 0.3), rng.lognormal(0.0, 0.3))
        for operation, name in product(operations, algorithms)
    }
    fixed = {(operation, many): sorted(rng.integers(3, 23, size=2)) for operation, many in product(operations, ranks)}
    true, runs = {}, {}
    for configuration in space.configurations():
        operation, many, size, algorithm, segment = (configuration[one.name] for one in parameters)
        name = algorithm
        if algorithm == "fixed":
            # The library's own decision: right for the smallest and largest sizes, wrong between.
            low, high = fixed[operation, many]
            name = "binomial" if size < 2**low else "recursive" if size < 2**high else "ring"
        latency, bandwidth = shares[operation, name]
        rounds, volume = _shape(name, int(many), int(size), int(segment))
        value = start * latency * rounds + per_byte * bandwidth * volume
        key = tuple(configuration[one.name] for one in parameters)
        true[key] = value
        runs[key] = [value * float(np.exp(noise * rng.standard_normal())) for _ in range(5)]
    return Table(space, over, runs, true)


def _shape(name: str, ranks: int, size: int, segment: int) -> tuple[float, float]:
    """Return the number of consecutive messages and of bytes: Thakur, Rabenseifner & Gropp (2005)."""
    steps = log(ranks) / log(2)
    match name:
        case "linear":
            return ranks - 1, (ranks - 1) * size
        case "binomial":
            return steps, steps * size
        case "ring":
            count = max(1.0, size / ranks / segment)
            return 2 * (ranks - 1) + 0.2 * count, 2 * size * (ranks - 1) / ranks
        case "recursive":
            return 2 * steps, 2.2 * size * (ranks - 1) / ranks + 0.2 * size
        case _:
            count = max(1.0, size / segment)
            return ranks - 1 + count, size + (ranks - 1) * min(size, segment)


def evaluate(table: Table, method: str, budgets: list[int], seed: int) -> dict[tuple[int, str], Score]:
    """Spend runs, and score the decisions of each rule after each budget."""
    sampler = DecisionSampler(table.space, table.over, seed=seed)
    rng = np.random.default_rng([seed, 99])
    draws = rng.permutation(table.space.all_indices())
    default = table.space.indices([table.space.default()])
    rows, seen, results = default[:0], [], {}
    for spent in range(1, max(budgets) + 1):
        history = History(rows, seen, StudyDirection.MINIMIZE)
        row = draws[spent - 1 : spent] if method == "random" else table.space.indices([sampler.propose(history)])
        values = table.runs[table.key(dict(table.space.decode(row)[0]))]
        rows = np.concatenate([rows, row])
        seen.append(Observation(float(rng.choice(values))))
        for rule in RULES if spent in budgets else ():
            results[spent, rule] = score(table, sampler, rows, seen, (seed, rule))
    return results


def score(table: Table, sampler: DecisionSampler, rows: Rows, seen: list[Observation], how: tuple[int, str]) -> Score:
    """Score the decisions of one rule; a cell is right if its setting is within 1 % of the best."""
    seed, rule = how
    cell_model = fit_cell_model(sampler.grid, rows, seen, 1.0, Kernels(seed))
    if cell_model is None:
        return 0.0, float("nan"), float("nan"), 0
    cells: dict[Key, list[float]] = defaultdict(list)
    for key, value in table.true.items():
        cells[key[: len(table.over)]].append(value)
    defaults = [table.key(dict(one)) for one in table.space.decode(sampler.grid.defaults)]
    found = choose_settings(cell_model, rows, CONFIDENCE if rule == "sure" else GUESS)
    keys = [table.key(dict(table.space.decode(one.row[None, :])[0])) for one in found]
    pairs = [(defaults[one.context], key) for one, key in zip(found, keys, strict=True)]
    stays = [True] * len(keys)
    compared = [place for place, (default, key) in enumerate(pairs) if key != default]
    if rule == "pairs":
        rng = np.random.default_rng([seed, 7])
        samples = [
            [log(rng.choice(table.runs[a]) / rng.choice(table.runs[b])) for _ in range(PAIRS)]
            for a, b in (pairs[place] for place in compared)
        ]
        for place, interval in zip(compared, intervals(samples, CONFIDENCE), strict=True):
            stays[place] = interval is not None and interval[1] > 0.0
    true = [table.true[key if there else default] for (default, key), there in zip(pairs, stays, strict=True)]
    ratios = [value / min(cells[default[: len(table.over)]]) for value, (default, _) in zip(true, pairs, strict=True)]
    worst = max(value / table.true[default] for value, (default, _) in zip(true, pairs, strict=True))
    more = 2 * PAIRS * len(compared) if rule == "pairs" else 0
    return fmean(ratio <= 1.01 for ratio in ratios), exp(fmean(map(log, ratios))), worst, more


def main() -> None:
    """Print a line for each method and number of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--shares", default="0.02,0.05,0.1", help="budgets, as shares of an exhaustive table's runs")
    parser.add_argument("--methods", default="ours,random")
    parser.add_argument("--choose", action="store_true", help="use the tables that the method was chosen on")
    given = parser.parse_args()
    tables = [synthetic((CHOOSE if given.choose else REPORT) + number) for number in range(given.tables)]
    head = f"{'method':8} {'rule':6} {'runs':>6} {'share':>6} {'right':>7} {'of the oracle':>14} {'worst/default':>14}"
    print(f"{head} fresh")
    for method in given.methods.split(","):
        found = defaultdict(list)
        for table, seed in product(tables, range(given.seeds)):
            budgets = {round(float(part) * len(table.runs)): part for part in given.shares.split(",")}
            for (spent, rule), result in evaluate(table, method, list(budgets), seed).items():
                found[rule, budgets[spent]].append((spent, *result))
        for (rule, part), results in found.items():
            spent, right, ratio, worst, fresh = (np.array(column) for column in zip(*results, strict=True))
            print(
                f"{method:8} {rule:6} {spent.mean():6.0f} {part:>6} {right.mean():7.1%} "
                f"{exp(np.log(ratio).mean()):14.3f} {worst.max():14.3f} {fresh.mean():.0f}",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
