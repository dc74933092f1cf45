"""Test how far results can be trusted, and what they cost, in simulated studies with the real runner and verdict.

    python benchmarks/verdicts/trust.py null planted coverage pairs replay [--studies 200] [--seed 0] [--data FOLDER]

null      parameters without an effect (A/A): how often a gain or a loss is claimed nevertheless
planted   one value, or a pair of values, makes the program 2, 5 or 20 % faster: how often that is found and claimed
coverage  verdicts on known speed-ups: how often the interval contains the truth (--verdicts for each noise)
pairs     the same for the comparison alone, which is quick: false gains, coverage and cost of the stopping rule
replay    measured tables in FOLDER: simulated seconds of our racing and caps against five repeats of everything

Runs take simulated time, so only autotune's decisions are tested. --data names a folder with `convolution/*.json.gz`
(Kernel Tuner caches) and `qe/pwx_silicon.csv.gz`, which are not part of this project.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import log
from pathlib import Path
from statistics import fmean, median, quantiles

import numpy as np
import optuna
from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from autotune import __version__
from autotune.comparison.pairs import pairs_wanted
from autotune.records.outcome import Outcome
from autotune.records.study import Run
from autotune.search.asker import Asker
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict, ratio_interval
from autotune.storage.observation import Observation
from autotune.studyfile import RepeatsSection, VerdictSection
from benchmarks.measured_tables import MeasuredTable, load_tables
from launchers import Usage
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.noise import SYNTHETIC, Noise, normal, read_recording, recorded, spread
from tests.support.simulated import (
    SimulatedExecutor,
    Simulation,
    ValueOf,
    simulated_study,
    study_file,
)

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

FIXED = RepeatsSection(min_runs=5, max_runs=5, caps=False, baseline_runs=5, warm_up_runs=0, baseline_every=0)


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


def coverage(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    for name, noise in chosen(noises(), options.noise).items():
        truths = np.random.default_rng(options.seed).uniform(0.95, 1.5, options.verdicts)
        verdicts = [simulate_verdict(noise, options.seed + number, float(truth)) for number, truth in enumerate(truths)]
        intervals = [verdict.interval(SECONDS) for verdict in verdicts]
        held = [low <= truth <= high for truth, (_, low, high) in zip(truths, intervals, strict=True)]
        above = [truth > high for truth, (_, _, high) in zip(truths, intervals, strict=True)]
        errors = [log(middle / truth) for truth, (middle, _, _) in zip(truths, intervals, strict=True)]
        yield {
            "noise": f"{name} ({spread(noise, options.seed):.1%})",
            "verdicts": str(len(verdicts)),
            "interval holds the truth": share(sum(held), len(held)),
            "truth above it": f"{fmean(above):.1%}",
            "truth below it": f"{1 - fmean(above) - fmean(held):.1%}",
            "half width": f"{median((high / low) ** 0.5 - 1 for _, low, high in intervals):.1%}",
            "bias": f"{fmean(errors):+.2%}",
            "pairs": f"{fmean(len(verdict.pairs) for verdict in verdicts):.1f}",
        }


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


def simulate_verdict(noise: Noise, seed: int, speed_up: float) -> Verdict:
    """Simulate the verdict on a winner with a known speed-up, without any tuning."""
    default = SPACE.default()
    quiet_s = {True: DEFAULT_S, False: DEFAULT_S / speed_up}
    executor = SimulatedExecutor(noisy(noise, seed, lambda configuration: quiet_s[configuration == default]), seed)
    study = study_file(seed=seed, verdict=VerdictSection(candidates=1), sampler="random")
    simulation = Simulation.of(SPACE, executor, study)
    for value_s in (DEFAULT_S, DEFAULT_S / 2):
        add_trial(simulation.asker, value_s)
    verdict = simulation.confirm()
    if verdict is None:
        raise AssertionError("the winner was made to look better than the default")
    return verdict


def add_trial(asker: Asker, value_s: float) -> None:
    trial = asker.ask()
    if trial is None:
        raise AssertionError("the space holds more than two configurations")
    outcome = Outcome({SECONDS.name: value_s}, usage=Usage(value_s))
    asker.store.add_runs([Run(trial.configuration, trial.number, outcome=outcome)])
    asker.store.settle_all({trial.number: Observation(value=value_s)})


@dataclass(frozen=True)
class Replayed:
    """Cost of a study of a measured table in simulated seconds, and its winner's excess over the table's best time."""

    tuning_s: float
    confirming_s: float
    excess: float
    gain_claimed: bool


def replay(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    tables = [] if options.data is None else list(load_tables(options.data))
    if not tables:
        print("no measured tables: give their folder with --data; replay is skipped")
    for table in tables:
        if options.table and options.table not in table.name:
            continue
        for steps in (0, 10) if table.name.startswith("pw.x") else (0,):
            yield replay_row(table, steps, options)


def replay_row(table: MeasuredTable, steps: int, options: argparse.Namespace) -> dict[str, str]:
    trials = min(TRIALS, table.space.size.value // 2)
    seeds = range(options.seed, options.seed + options.seeds)
    ours = [tune_table(table, seed, trials, RepeatsSection(), steps) for seed in seeds]
    fixed = [tune_table(table, seed, trials, FIXED, steps) for seed in seeds]
    both = list(zip(ours, fixed, strict=True))
    return {
        "table": f"{table.name}, paced" if steps else table.name,
        "seeds": str(len(seeds)),
        "trials": str(trials),
        "fixed / ours, tuning": spread_of([theirs.tuning_s / our.tuning_s for our, theirs in both]),
        "with our verdict": spread_of([theirs.tuning_s / (our.tuning_s + our.confirming_s) for our, theirs in both]),
        "excess, ours": spread_of([our.excess for our in ours], percent=True),
        "excess, fixed": spread_of([theirs.excess for theirs in fixed], percent=True),
        "ours faster, slower": f"{sum(our.excess < theirs.excess for our, theirs in both)}, "
        f"{sum(our.excess > theirs.excess for our, theirs in both)}",
        "default": f"{table.excess(table.space.default()):.0%}",
        "gain claimed": f"{sum(our.gain_claimed for our in ours)}",
    }


def tune_table(table: MeasuredTable, seed: int, trials: int, repeats: RepeatsSection, steps: int) -> Replayed:
    """Tune a table. Our method ends with a verdict; five repeats of everything choose the best value."""
    executor = SimulatedExecutor(table.value_of, seed, steps=steps)
    simulation = Simulation.of(table.space, executor, study_file(trials=trials, seed=seed, repeats=repeats))
    simulation.tune()
    tuning_s = executor.spent_s
    verdict = None if repeats is FIXED else simulation.confirm()
    standings = Standings.of(simulation.store.trials(), SECONDS)
    winner = standings.trials[verdict.winner] if verdict else standings.ranking[0]
    return Replayed(
        tuning_s,
        executor.spent_s - tuning_s,
        table.excess(winner.configuration),
        verdict is not None and verdict.significant(SECONDS),
    )


def share(count: int, total: int) -> str:
    """Return a share with its 95 % interval (Clopper-Pearson)."""
    interval = binomtest(count, total).proportion_ci()
    return f"{count / total:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def spread_of(values: list[float], *, percent: bool = False) -> str:
    """Return the median, the quartiles and the mean."""
    low, middle, high = quantiles(values, n=4)
    style = "{:.1%}" if percent else "{:.2f}"
    return f"{style.format(middle)} ({style.format(low)} to {style.format(high)}; mean {style.format(fmean(values))})"


def chosen(named: dict[str, Noise], wanted: str | None) -> dict[str, Noise]:
    return {name: noise for name, noise in named.items() if wanted is None or wanted in name}


PARTS: Mapping[str, Callable[[argparse.Namespace], Iterator[dict[str, str]]]] = {
    "null": null,
    "planted": planted,
    "coverage": coverage,
    "pairs": pairs,
    "replay": replay,
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
    parser.add_argument("--verdicts", type=int, default=1_000, help="verdicts per row of coverage and pairs")
    parser.add_argument("--seeds", type=int, default=20, help="pairs of studies per table of replay")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", help="only noises whose name contains this text")
    parser.add_argument("--table", help="only tables whose name contains this text")
    parser.add_argument("--data", type=Path, help="folder of measured tables")
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
