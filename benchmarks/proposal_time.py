"""Measure the time of a proposal: the default sampler against Optuna's, in one run.

    python benchmarks/proposal_time.py [--trials 50,200,1000,5000] [--proposals 10] [--peers tpe,random] [--idle]

The space is that of a tiled matrix product, with about 10^5 valid configurations. Each sampler first gets the same
random trials, whose values are a smooth function of the configuration plus noise. `ours/peer` is the ratio of medians.
Unless --idle is given, another process keeps a core busy, as a tuned program would.
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path
from statistics import median, quantiles

import numpy as np
import optuna

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune import __version__
from autotune.search.registry import sampler_of
from autotune.search.suggest import ask
from autotune.studyfile import SamplerSection
from spaces import Choice, Constraint, Integer, Space

SPACE = Space(
    [
        *(Integer.powers_of_two(name, 16, 512, default=16) for name in ("tile_m", "tile_n", "tile_k")),
        *(Integer.powers_of_two(name, 1, 16, default=1) for name in ("threads", "unroll")),
        Integer.powers_of_two("vector", 1, 8, default=1),
        Choice("order", ("ijk", "ikj", "jik", "jki", "kij", "kji"), default="ijk"),
    ],
    [Constraint("cache", "(tile_m * tile_k + tile_k * tile_n) * 8 <= 2 ** 20", "both tiles stay in the cache")],
)


def value_of(configuration: dict[str, object], rng: np.random.Generator) -> float:
    numbers = [np.log2(value) for value in configuration.values() if isinstance(value, int)]
    return float(np.exp(0.1 * np.sum((np.array(numbers) - 4.0) ** 2) + 0.02 * rng.normal()))


def random_trials(trials: int, seed: int) -> list[optuna.trial.FrozenTrial]:
    """Return completed trials of random configurations."""
    rng = np.random.default_rng(seed)
    study = optuna.create_study(sampler=sampler_of(SPACE, SamplerSection(name="random", seed=seed)))
    for _ in range(trials):
        trial = ask(study, SPACE)
        study.tell(trial, value_of(dict(trial.params), rng))
    return study.trials


def seconds_per_proposal(name: str, trials: list[optuna.trial.FrozenTrial], proposals: int) -> list[float]:
    """Measure the time of each of the next proposals, in seconds."""
    study = optuna.create_study(sampler=sampler_of(SPACE, SamplerSection(name=name)))
    study.add_trials(trials)
    rng = np.random.default_rng(1)
    study.tell(ask(study, SPACE), 1.0)  # warm up: some results are computed once per space
    taken = []
    for _ in range(proposals):
        start = time.perf_counter()
        trial = ask(study, SPACE)
        taken.append(time.perf_counter() - start)
        study.tell(trial, value_of(dict(trial.params), rng))
    return taken


def keep_busy() -> None:
    while True:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", default="50,200,1000,5000")
    parser.add_argument("--proposals", type=int, default=10)
    parser.add_argument("--peers", default="tpe,random")
    parser.add_argument("--idle", action="store_true")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"autotune {__version__}, Optuna {optuna.__version__}, {SPACE.size} valid configurations")
    other = multiprocessing.Process(target=keep_busy, daemon=True)
    if not options.idle:
        other.start()
    for trials in map(int, options.trials.split(",")):
        history = random_trials(trials, seed=0)
        ours = seconds_per_proposal("autotune", history, options.proposals)
        words = [f"ours {median(ours) * 1e3:.0f} ms (to {max(ours) * 1e3:.0f}; quartiles {spread(ours)})"]
        for peer in options.peers.split(","):
            theirs = seconds_per_proposal(peer, history, options.proposals)
            words.append(f"{peer} {median(theirs) * 1e3:.0f} ms, ours/{peer} {median(ours) / median(theirs):.1f}")
        print(f"{trials:5} trials: {'; '.join(words)}", flush=True)


def spread(values: list[float]) -> str:
    low, _, high = quantiles(values, n=4)
    return f"{low * 1e3:.0f} to {high * 1e3:.0f}"


if __name__ == "__main__":
    main()
