"""Measure what stopping trainings early saves and costs, on recorded learning curves.

    python benchmarks/hyperband.py record --python PYTHON-WITH-TORCH [--jobs 2] [--out benchmarks/data/dna_curves.csv]
    python benchmarks/hyperband.py replay [--table dna] [--seeds 20] [--trials 40] [--json]
    python benchmarks/hyperband.py regret [--table dna] [--seeds 20] [--first 0] [--trials 40] [--rules R,R]

`record` trains every configuration of the space of `autotune study dna` to its last epoch; `small_trainings` records
the other tables. `replay` runs the real runner, sampler and rules on these curves, without training. "random" draws the
same configurations under every rule (for one seed), so a rule is compared with full trainings of the same
configurations; "autotune" lets the sampler learn from the values that a rule lets it see. `regret` compares our rules
(each seed with another default) with Optuna's TPE and pruners: epochs until a value within 2 or 1 % of the best of all
curves, the distance of the best value from the optimum after some epochs, and that of the winner at the end.
"""

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

import optuna

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune.execution.core_pool import CorePool
from autotune.execution.segments import Segment
from autotune.search.asker import Asker
from autotune.search.gp_sampler import ValidSetSampler
from autotune.statistics.standings import Standings
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from benchmarks import small_trainings
from benchmarks.small_trainings import SCORE, key_of
from objectives.base import Metric
from objectives.training.torch import PROGRAMS
from spaces import Configuration, Float, Integer, Space
from tests.support.fakes import definition
from tests.support.managers import managed
from tests.support.training import PaperTraining, TrainingExecutor, training_study

FOLDER = Path(__file__).parent / "data"
DATA = FOLDER / "dna_curves.csv"
EPOCHS = 27
SPACE = Space(
    [
        Integer("batch_size", (8, 16, 32, 64, 128, 256), default=64),
        Float("learning_rate", 1e-4, 1e-1, log=True, points=10, default=1e-3),
    ]
)
RULES = ("hyperband", "asha", "median", "none")
LOOKS = (100, 200, 400)
CLOSE = (0.02, 0.01)
Key = tuple[float, ...]


@dataclass(frozen=True)
class Trainings:
    """Every training of a space, with up to `most` steps; `curves` maps values of parameters to a learning curve."""

    space: Space
    curves: dict[Key, list[float]]
    metric: Metric
    most: int

    def curve(self, configuration: Configuration) -> list[float]:
        return self.curves[key_of(configuration)]

    @property
    def optimum(self) -> float:
        return self.best(value for curve in self.curves.values() for value in curve)

    def best(self, values: Iterable[float]) -> float:
        return min(values, key=self.metric.cost)

    def off(self, value: float) -> float:
        """Return the relative distance of a value from the best of all curves."""
        return abs(value / self.optimum - 1.0)


def with_random_default(recorded: Trainings, seed: int) -> Trainings:
    """Replace the default by a random one; with a common default, studies hardly differ between seeds."""
    whole = sorted(key for key, curve in recorded.curves.items() if len(curve) == recorded.most)
    key = random.Random(seed).choice(whole)
    parameters = [
        replace(parameter, default=min(parameter.values, key=lambda one: abs(float(one) - value)))
        for parameter, value in zip(recorded.space.parameters, key, strict=True)
    ]
    return replace(recorded, space=Space(parameters))


def trainings(table: str) -> Trainings:
    if table == "dna":
        return Trainings(SPACE, read(DATA), SCORE, EPOCHS)
    training, curves = small_trainings.TRAININGS[table], small_trainings.read(FOLDER / f"{table}_curves.csv")
    return Trainings(training.space, curves, training.metric, training.most)


def train(python: str, configuration: Configuration) -> list[tuple[int, float, float]]:
    """Train to the last epoch, or until it diverges; return (epoch, val_auc, elapsed_s) of each epoch."""
    options = [f"--{name.replace('_', '-')}={value}" for name, value in configuration.items()]
    command = [python, "-P", "-m", "dna", *options, f"--epochs={EPOCHS}", f"--patience={EPOCHS}"]
    environment = {**os.environ, "PYTHONPATH": str(PROGRAMS), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ended.stdout.splitlines() if '"val_auc"' in line and '"step"' in line]
    return [(line["step"], line["val_auc"], line["elapsed_s"]) for line in lines if "best" not in line]


def record(python: str, jobs: int, out: Path) -> None:
    configurations = SPACE.decode(SPACE.all_indices())
    with out.open("w", newline="") as file, ThreadPoolExecutor(jobs) as pool:
        rows = csv.writer(file)
        rows.writerow(("batch_size", "learning_rate", "epoch", "val_auc", "elapsed_s"))
        found = pool.map(lambda one: train(python, one), configurations)
        for configuration, curve in zip(configurations, found, strict=True):
            key = [f"{value:g}" for value in key_of(configuration)]
            rows.writerows((*key, epoch, f"{auc:.6g}", f"{s:.2f}") for epoch, auc, s in curve)
            file.flush()


def read(path: Path) -> dict[Key, list[float]]:
    curves: dict[Key, list[float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            curves.setdefault((int(row["batch_size"]), float(row["learning_rate"])), []).append(float(row["val_auc"]))
    return curves


@dataclass(frozen=True)
class Result:
    """The outcome of one study.

    Attributes:
        epochs: Number of epochs trained.
        whole: Number of epochs that full trainings of the same configurations take.
        value: Best value in the winner's whole curve.
        best_drawn: Best value in the curves of all configurations drawn.
        seen: Values of all epochs in the order of training.
    """

    epochs: int
    whole: int
    value: float
    best_drawn: float
    seen: Sequence[float]


def run_study(recorded: Trainings, rule: str, sampler: str, seed: int, trials: int) -> Result:
    """Run one study on the curves; a training that diverged counts with the values before that."""
    rules = training_study(trials, rule=rule, max_steps=recorded.most)
    seen: list[float] = []

    def train_to(configuration: Configuration, step: int) -> float:
        seen.append(recorded.curve(configuration)[step - 1])
        return seen[-1]

    metric = recorded.metric
    executor = TrainingExecutor(train_to, ends=lambda configuration: len(recorded.curve(configuration)), metric=metric)
    store = StudyStore.in_memory(definition(recorded.space, metrics=(metric,)))
    asker = Asker(store, ValidSetSampler(recorded.space, seed=seed, model=sampler == "autotune"))
    with tempfile.TemporaryDirectory() as folder:
        whole = Segment(recorded.most, recorded.most, metric)
        pool = CorePool(range(2))
        manager = managed(executor, Path(folder), objective=PaperTraining(metric), pool=pool, whole=whole)
        TuningLoop(asker, manager, rules).tune()
    drawn = [curve for trial in store.trials() if (curve := recorded.curve(trial.configuration))]
    winner = Standings.of(store.trials(), metric).ranking[0]
    return Result(
        sum(last - first for _, first, last in executor.trained),
        sum(map(len, drawn)),
        recorded.best(recorded.curve(winner.configuration)),
        recorded.best(map(recorded.best, drawn)),
        seen,
    )


def run_peer(recorded: Trainings, pruner: optuna.pruners.BasePruner, seed: int, trials: int) -> list[float]:
    """Run a study of Optuna's TPE with one of its pruners; return the values of all epochs in order."""
    values = [sorted({key[place] for key in recorded.curves}) for place in range(len(recorded.space.parameters))]
    seen: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        chosen = [trial.suggest_int(str(place), 0, len(known) - 1) for place, known in enumerate(values)]
        curve = recorded.curves[tuple(known[one] for known, one in zip(values, chosen, strict=True))]
        for epoch, value in enumerate(curve, start=1):
            seen.append(value)
            trial.report(value, epoch)
            if epoch < len(curve) and trial.should_prune():
                raise optuna.TrialPruned
        if not curve:
            raise optuna.TrialPruned
        return recorded.best(curve)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction=recorded.metric.direction, sampler=sampler, pruner=pruner)
    study.optimize(objective, n_trials=trials)
    return seen


def regret(recorded: Trainings, seeds: Sequence[int], trials: int, rules: Sequence[str]) -> Iterator[str]:
    """Yield a line for each search method: epochs until it came close to the optimum."""
    pruners = {
        "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=recorded.most),
        "asha": optuna.pruners.SuccessiveHalvingPruner,
        "median": optuna.pruners.MedianPruner,
        "none": optuna.pruners.NopPruner,
    }
    for rule in rules:
        ours = [run_study(with_random_default(recorded, seed), rule, "autotune", seed, trials) for seed in seeds]
        won = statistics.median(recorded.off(one.value) for one in ours)
        yield f"autotune, {rule}: {regrets(recorded, [one.seen for one in ours])}, the winner {won:.2%} off"
    for name in [name for name in pruners if name in rules]:
        theirs = [run_peer(recorded, pruners[name](), seed, trials) for seed in seeds]
        yield f"Optuna's TPE, {name}: {regrets(recorded, theirs)}"


def regrets(recorded: Trainings, studies: Sequence[Sequence[float]]) -> str:
    """Describe, over studies, the epochs until a value close to the optimum, and the distance from it before."""
    parts = []
    for share in CLOSE:
        needed = sorted(epochs_until(recorded, share, seen) for seen in studies)
        low, middle, high = (needed[place] for place in (len(needed) // 4, len(needed) // 2, 3 * len(needed) // 4))
        parts.append(f"within {share:.0%} after {middle:.0f} epochs ({low:.0f} to {high:.0f})")
    for look in LOOKS:
        off = statistics.median(recorded.off(recorded.best(seen[:look])) for seen in studies)
        parts.append(f"{off:.2%} off after {look}")
    return "; ".join([*parts, f"{statistics.median(map(len, studies)):.0f} epochs in all"])


def epochs_until(recorded: Trainings, share: float, seen: Sequence[float]) -> float:
    """Return the number of epochs until a value within `share` of the optimum; infinity if that never happened."""
    return next((float(epoch) for epoch, one in enumerate(seen, start=1) if recorded.off(one) <= share), inf)


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
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--table", choices=("dna", *small_trainings.TRAININGS), default="dna")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--rules", default=",".join(RULES), help="rules that `regret` compares")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.what == "record":
        record(given.python, given.jobs, given.out)
        return
    if given.what == "regret":
        seeds = range(given.first, given.first + given.seeds)
        for line in regret(trainings(given.table), seeds, given.trials, given.rules.split(",")):
            print(line, flush=True)
        return
    found = replay(trainings(given.table), given.seeds, given.trials)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, values in found.items():
        print(f"{name}: " + "; ".join(f"{title} {value}" for title, value in values.items()))


if __name__ == "__main__":
    main()
