"""Kernel Tuner's own strategies against ours as one of its strategies, on two OpenCL kernels.

    python -m benchmarks.opencl measure DIR           # brute force of both spaces, for real: minutes each
    python -m benchmarks.opencl compare DIR           # every strategy, 20 seeds, 50 evaluations, in simulation mode

`measure` writes a cache file of Kernel Tuner for each kernel into DIR, and `compare` replays it as Kernel Tuner does: a
configuration has the time that it had. It needs a Python that has Kernel Tuner, PyOpenCL and autotune
(docs/how-to/kernel-tuner.md), and an OpenCL platform: Debian's pocl-opencl-icd serves.
"""

import argparse
import json
import random
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from kernel_tuner import tune_kernel

from autotune.search.kernel_tuner import AutotuneStrategy
from benchmarks.opencl.kernels import NAMES, arguments

OURS = "autotune"
STRATEGIES = (
    *("random_sample", "greedy_ils", "greedy_mls", "mls", "basinhopping", "dual_annealing", "simulated_annealing"),
    *("genetic_algorithm", "diff_evo", "pso", "firefly_algorithm", "bayes_opt", "hybrid_vndx"),
    *("adaptive_tabu_greywolf", OURS),
)
_CHECKPOINTS = (10, 25, 50)


def measure(folder: Path) -> None:
    """Run every configuration of every kernel."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        began = perf_counter()
        cache = folder / f"{name}.json"
        found, _ = tune_kernel(**arguments(name), cache=str(cache), iterations=7, quiet=True)
        worked = sorted(result["time"] for result in found if "__error__" not in result)
        print(
            f"{name}: {len(found)} configurations, {len(found) - len(worked)} failed, best {worked[0]:.3f} ms, "
            f"median {np.median(worked):.3f} ms, {perf_counter() - began:.0f} s"
        )


def compare(folder: Path, seeds: int, evaluations: int, strategies: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for every kernel and strategy: how far from the best of the space it was, seed by seed."""
    for name in NAMES:
        given, cache = arguments(name), folder / f"{name}.json"
        entries = json.loads(cache.read_text())["cache"].values()
        best = min(entry["time"] for entry in entries if "__error__" not in entry)
        for strategy in strategies:
            began, curves, used = perf_counter(), [], []
            for seed in range(seeds):
                curve = _curve(given, str(cache), strategy, seed, evaluations)
                used.append(len(curve))
                padded = [*curve, *[curve[-1]] * (evaluations - len(curve))]
                curves.append([padded[at - 1] / best for at in _CHECKPOINTS if at <= evaluations])
            quartiles = np.percentile(np.array(curves), [50, 25, 75], axis=0)
            yield {
                "kernel": name,
                "strategy": strategy,
                "at": [at for at in _CHECKPOINTS if at <= evaluations],
                "median": quartiles[0].tolist(),
                "quartiles": quartiles[1:].T.tolist(),
                "evaluations": float(np.median(used)),
                "seconds": (perf_counter() - began) / seeds,
                "last": [curve[-1] for curve in curves],
            }


def _curve(given: dict[str, Any], cache: str, strategy: str, seed: int, evaluations: int) -> list[float]:
    """Return the best time after each new configuration."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  its strategies draw from the global generator
    results, _ = tune_kernel(
        **given,
        cache=cache,
        simulation_mode=True,
        quiet=True,
        seed=seed,
        strategy=AutotuneStrategy(seed) if strategy == OURS else strategy,
        strategy_options={"max_fevals": evaluations},
    )
    seen: set[tuple[Any, ...]] = set()
    curve: list[float] = []
    for result in results:
        element = tuple(result[key] for key in given["tune_params"])
        if element in seen:
            continue
        seen.add(element)
        time = np.inf if "__error__" in result else float(result["time"])
        curve.append(min(time, curve[-1]) if curve else time)
    return curve


def _cell(row: dict[str, Any], place: int) -> str:
    low, high = row["quartiles"][place]
    return f"{row['median'][place]:.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--evaluations", type=int, default=50)
    parser.add_argument("--strategy", action="append", help="only these")
    asked = parser.parse_args()
    if asked.what == "measure":
        measure(asked.folder)
        return
    warnings.simplefilter("ignore")
    print(f"Kernel Tuner {version('kernel_tuner')}, {asked.seeds} seeds; best found / best there is", file=sys.stderr)
    with (asked.folder / "compared.jsonl").open("a") as log:
        for row in compare(asked.folder, asked.seeds, asked.evaluations, asked.strategy or list(STRATEGIES)):
            log.write(json.dumps(row) + "\n")
            log.flush()
            cells = " | ".join(_cell(row, place) for place in range(len(row["at"])))
            print(f"| {row['kernel']} | {row['strategy']} | {cells} | {row['evaluations']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
