"""Measure the start of a search: core-seconds until a configuration within 5 % of the best has run.

    python -m benchmarks.prediction.search_start [--seeds 2] [--trials 40] [--clusters gadi]

Clusters are simulated (`tests.support.simulated_clusters`). They start without measurements, and their true times are a
sum of other costs than the performance model's, with other rates on each cluster. The search knows the facts of the
machine and of the workload, as a study does. It is compared with the same search without a guide, and with random
trials. A run is stopped when it takes a quarter longer than the best, and costs its core-seconds until then. A search
that never gets within 5 % counts with all that it spent, which understates its cost.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import quantiles

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from optuna.study import StudyDirection

from autotune.performance.warm_start import guide
from autotune.search.base import History
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.prior_mean import PriorMean
from autotune.storage.observation import Observation
from tests.support.simulated_clusters import CLUSTERS, Cluster

NEAR = 0.05
CAP = 1.25


@dataclass(frozen=True)
class Ending:
    """The cost of a search until it was near the best, or until its last trial."""

    core_s: float
    trials: int
    reached: bool


def today(cluster: Cluster, seed: int) -> ValidSetSampler:
    return ValidSetSampler(cluster.space, seed=seed)


def at_random(cluster: Cluster, seed: int) -> ValidSetSampler:
    return ValidSetSampler(cluster.space, seed=seed, model=False)


def led(cluster: Cluster, seed: int) -> ValidSetSampler:
    sampler = ValidSetSampler(cluster.space, seed=seed)
    sampler.set_prior_mean(_guide(cluster), leads=True)
    sampler.set_held_cores(HeldCores.infer(cluster.space, lambda one: int(one["np"]) * int(one["threads"])))
    return sampler


METHODS: dict[str, Callable[[Cluster, int], ValidSetSampler]] = {
    "with what is known": led,
    "without it": today,
    "random": at_random,
}


def search(cluster: Cluster, sampler: ValidSetSampler, seed: int, trials: int) -> Ending:
    """Propose and run one trial after another."""
    rng = np.random.default_rng([seed, 1])
    rows = np.empty((0, len(cluster.space.parameters)), dtype=np.int32)
    seen: list[Observation] = []
    spent, best = 0.0, np.inf
    for number in range(1, trials + 1):
        proposal = sampler.propose(History(rows, seen, StudyDirection.MINIMIZE))
        row = cluster.space.indices([proposal])
        took = cluster.run_s(row[0], rng)
        lost = took > CAP * best
        spent += float(cluster.cores(row)[0]) * (CAP * best if lost else took)
        seen.append(Observation(bound=CAP * best) if lost else Observation(value=took))
        best = min(best, took)
        rows = np.concatenate([rows, row])
        if float(cluster.times_s(row)[0]) <= (1.0 + NEAR) * cluster.best_s:
            return Ending(spent, number, reached=True)
    return Ending(spent, trials, reached=False)


def main() -> int:
    """Search every cluster by every method and print what each spent."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=40, help="maximum number of trials of a search")
    parser.add_argument("--clusters", default="", help="only clusters whose name contains this text")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    ended: dict[str, list[Ending]] = {name: [] for name in options.methods}
    for place in CLUSTERS:
        for seed in range(options.seeds):
            cluster = Cluster.of(*place, seed)
            if options.clusters not in cluster.name:
                continue
            told = []
            for name in options.methods:
                ending = search(cluster, METHODS[name](cluster, seed), seed, options.trials)
                ended[name].append(ending)
                told.append(f"{name} {ending.core_s:,.0f} ({ending.trials}{'' if ending.reached else ', not reached'})")
            print(f"{cluster.name}, seed {seed}: {'; '.join(told)}", flush=True)
    print("\n| search | core-seconds: geometric mean | quartiles | trials, median | reached |\n|---|---|---|---|---|")
    for name, endings in ended.items():
        print(_row(name, endings))
    return 0


def _row(name: str, endings: list[Ending]) -> str:
    spent = [ending.core_s for ending in endings]
    low, middle, high = quantiles(spent, n=4, method="inclusive") if len(spent) > 1 else spent * 3
    mean = float(np.exp(np.mean(np.log(spent))))
    trials = float(np.median([ending.trials for ending in endings]))
    reached = sum(ending.reached for ending in endings)
    return f"| {name} | {mean:,.0f} | {low:,.0f}, {middle:,.0f}, {high:,.0f} | {trials:g} | {reached} of {len(spent)} |"


def _guide(cluster: Cluster) -> PriorMean:
    told = guide(cluster.space, cluster.setting, [])
    if told is None:
        msg = "nothing is known of the costs of pw.x: there is no model to begin with"
        raise SystemExit(msg)
    return told


if __name__ == "__main__":
    raise SystemExit(main())
