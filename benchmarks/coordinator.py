"""What the coordinator costs: time from the command to the first launch, and time per trial at a size of storage.

    python benchmarks/coordinator.py [--json]

The objective costs nothing: a per-trial time is all ours (proposal, storage, outcome, standings, the loop around them;
SQLite on disk); every configuration runs once, so that a trial is one run. A plain Optuna study with its TPE sampler on
the same file system is measured beside it, as the known peer.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import optuna

from autotune.execution.core_pool import CorePool
from autotune.records.study import Run
from autotune.search.asker import Asker
from autotune.search.distributions import distributions_of
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from spaces import Constraint, Integer, Space
from tests.support.fakes import PaperExecutor, definition, study_file, took
from tests.support.managers import managed

SIZES = (10, 1_000, 10_000)
TRIALS = 20
STARTS = 5

SPACE = Space(
    [
        Integer.range("np", 1, 48, default=48),
        Integer.range("npool", 1, 48, optional=True),
        Integer("ndiag", (1, 4, 9, 16, 25, 36), optional=True),
        Integer.range("ntg", 1, 16, optional=True),
        Integer.powers_of_two("block", 1, 1024, default=64),
    ],
    [
        Constraint("pools", "np % npool == 0", "every pool has as many ranks"),
        Constraint("diagonalisation", "ndiag <= np // npool", "the grid lies inside a pool"),
    ],
)


def seconds_of(configuration: dict) -> float:
    return 100 / configuration["np"] + abs(configuration["block"] - 128) / 100


def fill(study: optuna.Study, count: int) -> None:
    distributions = distributions_of(SPACE)
    for configuration in SPACE.sample(np.random.default_rng(0), count):
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(configuration),
                distributions={name: distributions[name] for name in configuration},
                value=seconds_of(dict(configuration)),
            )
        )


def ours(folder: Path, stored: int) -> float:
    url = f"sqlite:///{folder / 'ours.db'}"
    store = StudyStore.create(url, "paper", definition(SPACE))
    fill(optuna.load_study(study_name="paper", storage=url), stored)
    for trial in store.trials():
        store.add_runs([Run(trial.configuration, trial.number, outcome=took(seconds_of(dict(trial.configuration))))])
    asker = Asker(store, ValidSetSampler(SPACE))
    executor = PaperExecutor(lambda configuration: took(seconds_of(configuration)))
    manager = managed(executor, folder / "runs", pool=CorePool(range(48)))
    TuningLoop(asker, manager, study_file(budget={"trials": stored + 1})).tune()
    start = time.perf_counter()
    TuningLoop(asker, manager, study_file(budget={"trials": stored + 1 + TRIALS})).tune()
    return (time.perf_counter() - start) / TRIALS


def plain_optuna(folder: Path, stored: int) -> float:
    url = f"sqlite:///{folder / 'optuna.db'}"
    study = optuna.create_study(storage=url, sampler=optuna.samplers.TPESampler(seed=0))
    fill(study, stored)
    study.tell(ask_freely(study), 1.0)
    start = time.perf_counter()
    for _ in range(TRIALS):
        trial = ask_freely(study)
        study.tell(trial, 1.0)
    return (time.perf_counter() - start) / TRIALS


def ask_freely(study: optuna.Study) -> optuna.Trial:
    return study.ask(fixed_distributions=distributions_of(SPACE))


STUDY = """
objective = "command"
[options]
argv = ["date", "+started %s.%N x{x}"]
metrics = [{ name = "started", pattern = "started ([0-9.]+)", unit = "s" }]
[space.parameters.x]
type = "integer"
low = 1
high = 9
default = 1
[repeats]
baseline_runs = 1
"""


def start_up(folder: Path) -> float:
    (folder / "mine.toml").write_text(STUDY, encoding="utf-8")
    start = time.time()
    command = [sys.executable, "-m", "autotune", "study", "./mine.toml", "--trials", "1"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    stdout = (folder / "autotune-runs" / "mine" / "warm-up" / "stdout").read_text()
    return float(stdout.split()[1]) - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    result: dict[str, object] = {"optuna": optuna.__version__, "date": datetime.now(UTC).isoformat()}
    starts = []
    for _ in range(STARTS):
        with tempfile.TemporaryDirectory() as folder:
            starts.append(start_up(Path(folder)))
    result["start_up_s"] = {"median": statistics.median(starts), "min": min(starts), "max": max(starts)}
    rows = []
    for stored in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            mine, peer = ours(Path(folder), stored), plain_optuna(Path(folder), stored)
        rows.append({"stored": stored, "ours_ms": 1e3 * mine, "optuna_tpe_ms": 1e3 * peer, "ratio": mine / peer})
    result["per_trial"] = rows
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"command to first launch: median {statistics.median(starts):.2f} s of {STARTS} "
        f"({min(starts):.2f} to {max(starts):.2f})"
    )
    print(
        f"{'stored':>8} {'ours [ms/trial]':>16} {'Optuna ' + optuna.__version__ + ' TPE [ms/trial]':>30} {'ratio':>6}"
    )
    for row in rows:
        print(f"{row['stored']:>8} {row['ours_ms']:>16.1f} {row['optuna_tpe_ms']:>30.1f} {row['ratio']:>6.2f}")


if __name__ == "__main__":
    main()
