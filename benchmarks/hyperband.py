"""What stopping early saves, and what it costs: on recorded trainings of the dna network.

    python benchmarks/hyperband.py record --python PYTHON-WITH-TORCH [--jobs 2] [--out benchmarks/data/dna_curves.csv]
    python benchmarks/hyperband.py replay [--seeds 20] [--trials 40] [--json]
    python benchmarks/hyperband.py regret [--seeds 20] [--trials 40]

`record` trains every configuration of the space of `autotune study dna` to its last epoch. `replay` lets the real
runner, sampler and rules work on these curves, without training anything. "random" draws the same configurations under
every rule (for a seed), so that a rule is compared with the full training of the same configurations; "autotune" lets
the sampler learn from what a rule shows it. `regret` counts epochs until a value within 2 or 1 % of the best of all
curves was seen, and how far the best seen is off after some epochs: of our rules, and of Optuna's TPE and pruners.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
from objectives.training.torch import PROGRAMS
from spaces import Configuration, Float, Integer, Space
from tests.support.fakes import definition
from tests.support.managers import managed
from tests.support.training import SCORE, PaperTraining, TrainingExecutor, training_study

DATA = Path(__file__).parent / "data" / "dna_curves.csv"
EPOCHS = 27
SPACE = Space(
    [
        Integer("batch_size", (8, 16, 32, 64, 128, 256), default=64),
        Float("learning_rate", 1e-4, 1e-1, log=True, points=10, default=1e-3),
    ]
)
RULES = ("hyperband", "asha", "median", "none")
LOOKS = (100, 200, 400)
CLOSE = (0.98, 0.99)
Key = tuple[int, float]


def key_of(configuration: Configuration) -> Key:
    return int(configuration["batch_size"]), float(f"{float(configuration['learning_rate']):.6g}")


def trained(python: str, configuration: Configuration) -> list[tuple[int, float, float]]:
    """Train to the end; return (epoch, val_auc, elapsed_s). A training that diverges ends before."""
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
        found = pool.map(lambda one: trained(python, one), configurations)
        for configuration, curve in zip(configurations, found, strict=True):
            rows.writerows((*key_of(configuration), epoch, f"{auc:.6g}", f"{s:.2f}") for epoch, auc, s in curve)
            file.flush()


def read(path: Path) -> dict[Key, list[float]]:
    curves: dict[Key, list[float]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            curves.setdefault((int(row["batch_size"]), float(row["learning_rate"])), []).append(float(row["val_auc"]))
    return curves


@dataclass(frozen=True)
class Result:
    """One study: epochs trained, and at most; the value of its winner at the end, and of the best that was drawn.

    `seen` are the values of all epochs, in the order in which they were trained.
    """

    epochs: int
    whole: int
    value: float
    best_drawn: float
    seen: Sequence[float]


def study(curves: dict[Key, list[float]], rule: str, sampler: str, seed: int, trials: int) -> Result:
    """Run one study on the curves. A training that diverged counts with what it had reached."""
    rules = training_study(trials, rule=rule, max_steps=EPOCHS)
    seen: list[float] = []

    def trained_to(configuration: Configuration, step: int) -> float:
        seen.append(curves[key_of(configuration)][step - 1])
        return seen[-1]

    executor = TrainingExecutor(
        trained_to,
        ends=lambda configuration: len(curves[key_of(configuration)]),
    )
    store = StudyStore.in_memory(definition(SPACE, metrics=(SCORE,)))
    asker = Asker(store, ValidSetSampler(SPACE, seed=seed, model=sampler == "autotune"))
    with tempfile.TemporaryDirectory() as folder:
        whole = Segment(EPOCHS, EPOCHS, SCORE)
        pool = CorePool(range(2))
        manager = managed(executor, Path(folder), objective=PaperTraining(), pool=pool, whole=whole)
        TuningLoop(asker, manager, rules).tune()
    drawn = [curves[key_of(trial.configuration)] for trial in store.trials()]
    winner = Standings.of(store.trials(), SCORE).ranking[0]
    return Result(
        sum(last - first for _, first, last in executor.trained),
        sum(map(len, drawn)),
        max(curves[key_of(winner.configuration)]),
        max(map(max, drawn)),
        seen,
    )


def peer(curves: dict[Key, list[float]], pruner: optuna.pruners.BasePruner, seed: int, trials: int) -> list[float]:
    """Return the values of all epochs that Optuna's TPE trains with one of its pruners."""
    sizes = sorted({size for size, _ in curves})
    rates = sorted({rate for _, rate in curves})
    seen: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        size, rate = trial.suggest_int("size", 0, len(sizes) - 1), trial.suggest_int("rate", 0, len(rates) - 1)
        curve = curves[sizes[size], rates[rate]]
        for epoch, value in enumerate(curve, start=1):
            seen.append(value)
            trial.report(value, epoch)
            if epoch < len(curve) and trial.should_prune():
                raise optuna.TrialPruned
        return max(curve)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=seed)
    optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner).optimize(objective, n_trials=trials)
    return seen


def regret(path: Path, seeds: int, trials: int) -> Iterator[str]:
    """Yield a line for each way to search: what it had found after how many epochs."""
    curves = read(path)
    optimum = max(map(max, curves.values()))
    pruners = {
        "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=EPOCHS),
        "asha": optuna.pruners.SuccessiveHalvingPruner,
        "median": optuna.pruners.MedianPruner,
        "none": optuna.pruners.NopPruner,
    }
    for rule in RULES:
        ours = [study(curves, rule, "autotune", seed, trials).seen for seed in range(seeds)]
        yield f"autotune, {rule}: {regrets(ours, optimum)}"
    for name, pruner in pruners.items():
        theirs = [peer(curves, pruner(), seed, trials) for seed in range(seeds)]
        yield f"Optuna's TPE, {name}: {regrets(theirs, optimum)}"


def regrets(studies: Sequence[Sequence[float]], optimum: float) -> str:
    """Return the median and quartiles of epochs until a value is close to the optimum, and how far it is off before."""
    parts = []
    for share in CLOSE:
        needed = sorted(epochs_until(share * optimum, seen) for seen in studies)
        low, middle, high = (needed[place] for place in (len(needed) // 4, len(needed) // 2, 3 * len(needed) // 4))
        parts.append(f"within {1 - share:.0%} after {middle:.0f} epochs ({low:.0f} to {high:.0f})")
    for look in LOOKS:
        off = statistics.median(1.0 - max(seen[:look]) / optimum for seen in studies)
        parts.append(f"{off:.2%} off after {look}")
    return "; ".join([*parts, f"{statistics.median(map(len, studies)):.0f} epochs in all"])


def epochs_until(value: float, seen: Sequence[float]) -> float:
    """Return after how many epochs a value was reached; infinity if it never was."""
    return next((float(epoch) for epoch, one in enumerate(seen, start=1) if one >= value), inf)


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


def replay(path: Path, seeds: int, trials: int) -> dict[str, dict[str, float]]:
    curves = read(path)
    optimum = max(map(max, curves.values()))
    return {
        f"{rule}, {sampler}": row([study(curves, rule, sampler, seed, trials) for seed in range(seeds)], optimum)
        for sampler in ("random", "autotune")
        for rule in RULES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("record", "replay", "regret"))
    parser.add_argument("--python", default="python3")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=DATA)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.what == "record":
        record(given.python, given.jobs, given.out)
        return
    if given.what == "regret":
        for line in regret(given.data, given.seeds, given.trials):
            print(line, flush=True)
        return
    found = replay(given.data, given.seeds, given.trials)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    for name, values in found.items():
        print(f"{name}: " + "; ".join(f"{title} {value}" for title, value in values.items()))


if __name__ == "__main__":
    main()
