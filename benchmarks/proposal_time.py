"""Measure the CPU time of a proposal through storage: the default sampler against Optuna's, in one run.

    OMP_NUM_THREADS=1 python benchmarks/proposal_time.py [--trials 50,200,500,1000] [--proposals 10] [--peers tpe]

The space is that of a tiled matrix product, with about 10^5 valid configurations. Each sampler first gets the same
random trials in an SQLite file. Their values are a smooth function of the configuration plus noise. `ours/peer` is the
ratio of medians.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
import optuna

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune import __version__
from autotune.search.asker import Asker
from autotune.search.distributions import distributions_of
from autotune.search.registry import sampler_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from autotune.studyfile import SamplerSection
from spaces import Choice, Constraint, Integer, Space
from tests.support.fakes import definition

SPACE = Space(
    [
        *(Integer.powers_of_two(name, 16, 512, default=16) for name in ("tile_m", "tile_n", "tile_k")),
        *(Integer.powers_of_two(name, 1, 16, default=1) for name in ("threads", "unroll")),
        Integer.powers_of_two("vector", 1, 8, default=1),
        Choice("order", ("ijk", "ikj", "jik", "jki", "kij", "kji"), default="ijk"),
    ],
    [Constraint("cache", "(tile_m * tile_k + tile_k * tile_n) * 8 <= 2 ** 20", "both tiles stay in the cache")],
)


def value_of(configuration: Mapping[str, Any], rng: np.random.Generator) -> float:
    numbers = [np.log2(value) for value in configuration.values() if isinstance(value, int)]
    return float(np.exp(0.1 * np.sum((np.array(numbers) - 4.0) ** 2) + 0.02 * rng.normal()))


def cpu_seconds_per_proposal(name: str, trials: int, proposals: int) -> list[float]:
    """Measure the CPU time of each of the next proposals after `trials` random ones, in seconds."""
    rng = np.random.default_rng(0)
    configurations = SPACE.sample(rng, trials)
    with tempfile.TemporaryDirectory() as folder:
        store = StudyStore.create(f"sqlite:///{folder}/trials.db", "time", definition(SPACE))
        numbers = store.add_trials(configurations, distributions_of(SPACE))
        seen = {
            number: Observation(value=value_of(one, rng)) for number, one in zip(numbers, configurations, strict=True)
        }
        store.settle_all(seen)
        asker = Asker(store, sampler_of(SPACE, SamplerSection(name=name)))
        taken = []
        for _ in range(1 + proposals):
            start = time.process_time()
            trial = asker.ask(seen)
            taken.append(time.process_time() - start)
            if trial is None:
                break
            seen[trial.number] = Observation(value=value_of(trial.configuration, rng))
            store.settle_all({trial.number: seen[trial.number]})
    return taken[1:]  # some results are computed once per space and study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", default="50,200,500,1000")
    parser.add_argument("--proposals", type=int, default=10)
    parser.add_argument("--peers", default="tpe,random")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"autotune {__version__}, Optuna {optuna.__version__}, {SPACE.size} valid configurations")
    for trials in map(int, options.trials.split(",")):
        ours = cpu_seconds_per_proposal("autotune", trials, options.proposals)
        words = [f"ours {median(ours) * 1e3:.0f} ms (to {max(ours) * 1e3:.0f}; quartiles {spread(ours)})"]
        for peer in options.peers.split(","):
            theirs = cpu_seconds_per_proposal(peer, trials, options.proposals)
            words.append(f"{peer} {median(theirs) * 1e3:.0f} ms, ours/{peer} {median(ours) / median(theirs):.1f}")
        print(f"{trials:5} trials: {'; '.join(words)}", flush=True)


def spread(values: list[float]) -> str:
    low, _, high = quantiles(values, n=4)
    return f"{low * 1e3:.0f} to {high * 1e3:.0f}"


if __name__ == "__main__":
    main()
