"""Test how far results can be trusted, and what they cost, in simulated studies with the real runner and verdict.

    python benchmarks/verdicts/trust.py null planted pairs [--studies 200] [--verdicts 1000] [--seed 0]

null      parameters without an effect (A/A): how often a gain or a loss is claimed nevertheless
planted   one value, or a pair of values, makes the program 2, 5 or 20 % faster: how often that is found and claimed
pairs     the comparison alone, on known speed-ups: false gains, coverage and cost of the stopping rule

Runs take simulated time, so only autotune's decisions are tested.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median

import numpy as np
import optuna
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from autotune import __version__
from autotune.comparison.pairs import pairs_wanted
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict, ratio_interval
from autotune.studyfile import VerdictSection
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.noise import SYNTHETIC, Noise, normal, read_recording, recorded, spread
from tests.support.simulated import SimulatedExecutor, ValueOf, simulated_study

TRIALS = 50
DEFAULT_S = 100.0
# Sampler and rounds seed their generators with (seed, number of the trial or round); noise must be independent of them.
_NOISE_STREAM = 10**6
SPACE = Space([Integer.range(name, 1, 4, default=1) for name in ("a", "b", "c", "d")])
RECORDINGS = {"recorded, busy": "pwx_repeats_busy.csv", "recorded, quiet": "pwx_repeats.csv"}

GAINS = (0.02, 0.05, 0.20)
TRUTHS = (1.0, 1.1, 1.6)
SETTINGS = VerdictSection()
PLANTED: Mapping[str, Configuration] = {"one value": {"a": 4}, "a pair": {"a": 4, "b": 4}}


def noises() -> dict[str, Noise]:
    found = dict(SYNTHETIC)
    for name, file in RECORDINGS.items():
        path = Path(__file__).parent.parent / "data" / file
        if path.is_file():
            found[name] = recorded(read_recording(path))
        else:
            print(f"no recording {file}: skipped")
    return found


def noisy(noise: Noise, seed: int, quiet_s: Callable[[Configuration], float]) -> ValueOf:
    """Return a function that draws run times: `quiet_s` times noise, which has its own random generator."""
    factors = noise(np.random.default_rng([seed, _NOISE_STREAM]))
    return lambda configuration, _: quiet_s(configuration) * next(factors)


@dataclass(frozen=True)
class Claim:
    """The outcome of one simulated study; `tuned` is the gain that tuning alone, without a verdict, would report."""

    verdict: Verdict | None
    winner: Configuration | None
    tuned: float
    trial_runs: float
    cost_s: float

    @property
    def gain(self) -> bool:
        return self.verdict is not None and self.verdict.significant(SECONDS)

    @property
    def loss(self) -> bool:
        return self.verdict is not None and self.verdict.known and self.verdict.interval(SECONDS)[2] < 1.0


def simulate_study(noise: Noise, seed: int, quiet_s: Callable[[Configuration], float]) -> Claim:
    executor = SimulatedExecutor(noisy(noise, seed, quiet_s), seed)
    store, verdict, _ = simulated_study(SPACE, executor, trials=TRIALS, seed=seed)
    trials = store.trials()
    standings = Standings.of(trials, SECONDS)
    winner = standings.trials[verdict.winner].configuration if verdict else None
    trial_runs = sum(len(trial.runs) for trial in trials) / len(trials)
    return Claim(verdict, winner, standings.gain(standings.ranking[0]) or 1.0, trial_runs, executor.spent_s)


def null(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    for name, noise in chosen(noises(), options.noise).items():
        claims = [
            simulate_study(noise, options.seed + number, lambda _: DEFAULT_S) for number in range(options.studies)
        ]
        yield {
            "noise": f"{name} ({spread(noise, options.seed):.1%})",
            "studies": str(len(claims)),
            "gains claimed": share(sum(c.gain for c in claims), len(claims)),
            "losses found": share(sum(c.loss for c in claims), len(claims)),
            "no candidate": str(sum(c.verdict is None for c in claims)),
            "gain by tuning alone": f"{median(c.tuned for c in claims) - 1:.1%}",
            "runs per trial": f"{fmean(c.trial_runs for c in claims):.2f}",
            "pairs": f"{fmean(len(c.verdict.pairs) for c in claims if c.verdict):.1f}",
            "cost [runs]": f"{median(c.cost_s for c in claims) / DEFAULT_S:.0f}",
        }


def planted(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    for (where, wanted), gain in product(PLANTED.items(), GAINS):

        def quiet_s(configuration: Configuration, wanted: Configuration = wanted, gain: float = gain) -> float:
            return DEFAULT_S / (1.0 + gain) if has(configuration, wanted) else DEFAULT_S

        claims = [simulate_study(normal, options.seed + number, quiet_s) for number in range(options.studies)]
        yield {
            "planted": where,
            "gain": f"{gain:.0%}",
            "studies": str(len(claims)),
            "winner has it": share(sum(has(c.winner or {}, wanted) for c in claims), len(claims)),
            "gain claimed": share(sum(c.gain for c in claims), len(claims)),
            "claimed without it": str(sum(c.gain and not has(c.winner or {}, wanted) for c in claims)),
            "runs per trial": f"{fmean(c.trial_runs for c in claims):.2f}",
            "pairs": f"{fmean(len(c.verdict.pairs) for c in claims if c.verdict):.1f}",
            "cost [runs]": f"{median(c.cost_s for c in claims) / DEFAULT_S:.0f}",
        }


def has(configuration: Configuration, wanted: Configuration) -> bool:
    return all(configuration.get(name) == value for name, value in wanted.items())


def pairs(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    for (name, noise), truth in product(chosen(noises(), options.noise).items(), TRUTHS):
        told = [simulate_comparison(noise, options.seed + number, truth) for number in range(options.verdicts)]
        held = [low <= truth <= high for _, low, high in told]
        yield {
            "noise": name,
            "speed-up": f"{truth}",
            "interval holds the truth": share(sum(held), len(held)),
            "gain claimed": f"{fmean(low > 1.0 for _, low, _ in told):.1%}",
            "half width": f"{median((high / low) ** 0.5 - 1 for _, low, high in told):.1%}",
            "pairs": f"{fmean(count for count, _, _ in told):.1f}",
            "cost [runs of the default]": f"{fmean(count for count, _, _ in told) * (1.0 + 1.0 / truth):.1f}",
        }


def simulate_comparison(noise: Noise, seed: int, speed_up: float) -> tuple[int, float, float]:
    """Simulate the pairs of a comparison until it stops; return their number, and the ends of the interval."""
    rng = np.random.default_rng(seed)
    factors = noise(np.random.default_rng([seed, _NOISE_STREAM]))
    made: list[tuple[float, float]] = []
    while (wanted := pairs_wanted(made, SETTINGS, SECONDS)) > len(made):
        for _ in range(wanted - len(made)):
            first, second = next(factors), next(factors)
            default, winner = (first, second) if rng.random() < 0.5 else (second, first)
            made.append((default, winner / speed_up))
    _, low, high = ratio_interval(made, SECONDS, SETTINGS.confidence)
    return len(made), low, high


def share(count: int, total: int) -> str:
    """Return a share with its 95 % interval (Clopper-Pearson)."""
    interval = binomtest(count, total).proportion_ci()
    return f"{count / total:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def chosen(named: dict[str, Noise], wanted: str | None) -> dict[str, Noise]:
    return {name: noise for name, noise in named.items() if wanted is None or wanted in name}


PARTS: Mapping[str, Callable[[argparse.Namespace], Iterator[dict[str, str]]]] = {
    "null": null,
    "planted": planted,
    "pairs": pairs,
}


def show(part: str, options: argparse.Namespace) -> None:
    """Print every row as soon as it is known: a whole part takes minutes."""
    start = time.perf_counter()
    print(f"\n{part}, seed {options.seed}")
    for row in PARTS[part](options):
        print("  " + "; ".join(f"{name}: {value}" for name, value in row.items()), flush=True)
    print(f"  ({time.perf_counter() - start:.0f} s)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; default: all")
    parser.add_argument("--studies", type=int, default=200, help="studies per row of null and planted")
    parser.add_argument("--verdicts", type=int, default=1_000, help="verdicts per row of pairs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", help="only noises whose name contains this text")
    options = parser.parse_args()
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    print(
        f"autotune {__version__}, numpy {np.__version__}, Optuna {optuna.__version__}, Python {sys.version.split()[0]}"
    )
    for part in options.parts or PARTS:
        show(part, options)


if __name__ == "__main__":
    main()
