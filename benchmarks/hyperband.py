"""Measure what stopping trainings early saves and costs, on recorded learning curves.

    python -m benchmarks.hyperband record --python PYTHON-WITH-TORCH [--jobs 2] [--out benchmarks/data/dna_curves.csv]
    python -m benchmarks.hyperband replay [--tables dna] [--seeds 20] [--trials 40] [--json]
    python -m benchmarks.hyperband regret [--taskset FOLDER] [--tables dna] [--methods autotune] [--seeds 20]

`record` trains every configuration of the space of `autotune study dna` to its last epoch; `small_trainings` records
the other tables. `replay` runs the real runner, sampler and rules on these curves, without training. "random" draws the
same configurations under every rule (for one seed), so a rule is compared with full trainings of the same
configurations; "autotune" lets the sampler learn from the values that a rule lets it see. `regret` compares ours with
other searches (each seed with another default) after some epochs: the distance of the best value from that of all
curves, where 1 is the median of all trainings; then the processor time of a whole search.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path

import numpy as np

from autotune.execution.core_pool import CorePool
from autotune.execution.segments import Segment
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.standings import Standings
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from benchmarks.small_trainings import key_of
from benchmarks.training_peers import train_with_asha, train_with_bohb, train_with_dehb, train_with_tpe
from benchmarks.training_tables import DNA_EPOCHS, DNA_SPACE, FOLDER, Trainings, load_tables
from objectives.training.torch import PROGRAMS
from spaces import Configuration
from tests.support.fakes import definition
from tests.support.managers import managed
from tests.support.training import PaperTraining, TrainingExecutor, training_study

RULES = ("hyperband", "asha", "median", "none")
LOOKS = (100, 200, 400, 800)


def train(python: str, configuration: Configuration) -> list[tuple[int, float, float]]:
    """Train to the last epoch, or until it diverges; return (epoch, val_auc, elapsed_s) of each epoch."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in configuration.items()]
    command = [python, "-P", "-m", "dna", *options, f"--epochs={DNA_EPOCHS}", f"--patience={DNA_EPOCHS}"]
    environment = {**os.environ, "PYTHONPATH": str(PROGRAMS), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if '"val_auc"' in line and '"step"' in line]
    return [(line["step"], line["val_auc"], line["elapsed_s"]) for line in lines if "best" not in line]


def record(python: str, jobs: int, out: Path) -> None:
    configurations = DNA_SPACE.decode(DNA_SPACE.all_indices())
    with out.open("w", newline="") as file, ThreadPoolExecutor(jobs) as pool:
        rows = csv.writer(file)
        rows.writerow(("batch_size", "learning_rate", "epoch", "val_auc", "elapsed_s"))
        found = pool.map(lambda one: train(python, one), configurations)
        for configuration, curve in zip(configurations, found, strict=True):
            key = [f"{value:g}" for value in key_of(configuration)]
            rows.writerows((*key, epoch, f"{auc:.6g}", f"{s:.2f}") for epoch, auc, s in curve)
            file.flush()


@dataclass(frozen=True)
class Result:
    """The outcome of one study.

    Attributes:
        epochs: Number of epochs trained.
        whole: Number of epochs that full trainings of the same configurations take.
        value: Best value in the winner's whole curve.
        best_drawn: Best value in the curves of all configurations drawn.
    """

    epochs: int
    whole: int
    value: float
    best_drawn: float


class SpentError(Exception):
    """All epochs of a search are used."""


def tune(  # noqa: PLR0913  by keyword
    recorded: Trainings, *, rule: str, sampler: str, seed: int, trials: int, budget: float = inf
) -> tuple[StudyStore, list[float]]:
    """Run one study of at most `budget` epochs; return it, and the values of all epochs in order.

    A training that diverged counts with the values before that.
    """
    rules = training_study(trials, rule=rule, max_steps=recorded.most)
    seen: list[float] = []

    def train_to(configuration: Configuration, step: int) -> float:
        if len(seen) >= budget:
            raise SpentError
        seen.append(recorded.curve(configuration)[step - 1])
        return seen[-1]

    metric = recorded.metric
    executor = TrainingExecutor(train_to, ends=lambda configuration: len(recorded.curve(configuration)), metric=metric)
    store = StudyStore.in_memory(definition(recorded.space, metrics=(metric,)))
    asker = Asker(store, ValidSetSampler(recorded.space, seed=seed, model=sampler == "autotune"))
    with tempfile.TemporaryDirectory() as folder, suppress(SpentError):
        whole = Segment(recorded.most, recorded.most, metric)
        pool = CorePool(range(2))
        manager = managed(executor, Path(folder), objective=PaperTraining(metric), pool=pool, whole=whole)
        TuningLoop(asker, manager, rules).tune()
    return store, seen


def run_study(recorded: Trainings, rule: str, sampler: str, seed: int, trials: int) -> Result:
    """Run one study on the curves to its end."""
    store, seen = tune(recorded, rule=rule, sampler=sampler, seed=seed, trials=trials)
    drawn = [curve for trial in store.trials() if (curve := recorded.curve(trial.configuration))]
    winner = Standings.of(store.trials(), recorded.metric).ranking[0]
    best = recorded.best(recorded.curve(winner.configuration))
    return Result(len(seen), sum(map(len, drawn)), best, recorded.best(map(recorded.best, drawn)))


def train_with_ours(recorded: Trainings, seed: int, budget: int, *, rule: str) -> list[float]:
    """Search with ours, with as many trials as the epochs allow."""
    from_default = recorded.with_default(recorded.default(seed))
    return tune(from_default, rule=rule, sampler="autotune", seed=seed, trials=budget, budget=budget)[1]


METHODS: dict[str, Callable[[Trainings, int, int], list[float]]] = {
    **{f"autotune, {rule}": partial(train_with_ours, rule=rule) for rule in RULES},
    "DEHB": train_with_dehb,
    "BOHB": train_with_bohb,
    "TPE, halving": train_with_tpe,
    "Ray's ASHA": train_with_asha,
}


def regrets(recorded: Trainings, seen: Sequence[float]) -> list[float]:
    """Return the regret after each of LOOKS epochs, or at the end of a shorter search."""
    return [recorded.regret(recorded.best(seen[:look])) for look in LOOKS]


def compare(names: Sequence[str], tables: Mapping[str, Trainings], seeds: Sequence[int]) -> Iterator[str]:
    """Yield a line for each method and table: the median regrets over seeds, and their quartiles at the end."""
    for table, recorded in tables.items():
        for name in names:
            start_s = time.process_time()
            found = np.array([regrets(recorded, METHODS[name](recorded, seed, LOOKS[-1])) for seed in seeds])
            cpu_s = (time.process_time() - start_s) / len(seeds)
            low, high = np.quantile(found[:, -1], (0.25, 0.75))
            middle = " ".join(f"{value:.3f}" for value in np.median(found, axis=0))
            yield f"{table}: {name}: {middle} ({low:.3f} to {high:.3f}); {cpu_s:.1f} s a search"


def row(results: Sequence[Result], optimum: float) -> dict[str, float]:
    shares = [one.epochs / one.whole for one in results]
    against_drawn = [one.value / one.best_drawn for one in results]
    quartiles = statistics.quantiles([one.value / optimum for one in results], n=4)
    return {
        "epochs, share of all to the end": round(statistics.median(shares), 3),
        "same configurations: value / best of them, median": round(statistics.median(against_drawn), 4),
        "mean": round(statistics.fmean(against_drawn), 4),
        "least": round(min(against_drawn), 4),
        "value / best of the space, median": round(statistics.median(one.value / optimum for one in results), 4),
        "quartiles": [round(quartiles[0], 4), round(quartiles[2], 4)],
    }


def replay(recorded: Trainings, seeds: int, trials: int) -> dict[str, dict[str, float]]:
    return {
        f"{rule}, {sampler}": row(
            [run_study(recorded, rule, sampler, seed, trials) for seed in range(seeds)], recorded.optimum
        )
        for sampler in ("random", "autotune")
        for rule in RULES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "replay", "regret"))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER / "dna_curves.csv")
    parser.add_argument("--tables", nargs="*", metavar="TEXT", help="only tables whose name contains one of these")
    parser.add_argument("--taskset", type=Path, help="folder with tables of TaskSet")
    parser.add_argument("--methods", nargs="*", metavar="TEXT", help="methods that `regret` compares")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.what == "record":
        record(given.python, given.jobs, given.out)
        return
    tables = {name: table for name, table in load_tables(given.taskset) if is_wanted(name, given.tables)}
    if given.what == "regret":
        methods = [name for name in METHODS if is_wanted(name, given.methods)]
        for line in compare(methods, tables, range(given.first, given.first + given.seeds)):
            print(line, flush=True)
        return
    for table, recorded in tables.items():
        found = replay(recorded, given.seeds, given.trials)
        if given.json:
            print(json.dumps({table: found}, indent=2))
            continue
        for name, values in found.items():
            print(f"{table}: {name}: " + "; ".join(f"{title} {value}" for title, value in values.items()))


def is_wanted(name: str, wanted: Sequence[str] | None) -> bool:
    return not wanted or any(text in name for text in wanted)


if __name__ == "__main__":
    main()
