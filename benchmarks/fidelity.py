"""Short runs that stand for long ones: what a study costs with and without `[fidelity]`, and how good its winner is.

    python benchmarks/fidelity.py [--seeds 20] [--trials 50] [--only NAME]

The runner, the search and the races are the real ones; runs take simulated time. Most programs are made to fool short
runs: by a start that is slow or fast, by tuning themselves, by a number of iterations that depends on the
configuration, by a machine that drifts. `tuning` is the median of what a study takes until tuning ends, in runs of the
default; in brackets the quartiles; `all` is that with the rounds and pairs at the end. The winner is the one that the
study names, after these. It is wrong if it takes over 2 % longer than the best configuration that this study has
proposed: that is what short runs may spoil; over the best of the space it is the search's part, too.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import exp
from pathlib import Path
from statistics import median, quantiles

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune.records.series import SeriesKind
from autotune.statistics.standings import Standings
from autotune.studyfile.fidelity import FidelitySection
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.lengths import STEPS, LengthSimulation
from tests.support.simulated import SimulatedExecutor, study_file

LOW, HIGH = 500, 5000
NOISE = 0.01
WRONG = 1.02


@dataclass(frozen=True)
class Program:
    """`seconds` that a configuration takes for a number of steps; `drift` is how slow the machine is at a time."""

    space: Space
    seconds: Callable[[Configuration, int], float]
    drift: Callable[[float], float] = lambda _: 1.0


SPACE = Space([Integer.range(name, 0, 4, default=4) for name in ("a", "b", "c", "d")])


def pace(x: Configuration) -> float:
    """Return seconds per step of the made-up program: 1 to 4 ms, with an interaction."""
    a, b, c, d = (float(x[name]) / 4.0 for name in ("a", "b", "c", "d"))
    return 0.001 * (1.0 + 1.2 * (a - 0.25) ** 2 + 0.9 * abs(b - 0.5) + 0.5 * c * (1.0 - d) + 0.4 * d)


def _tuned(x: Configuration, steps: int) -> float:
    """A quarter of the configurations balance themselves in their first 1500 steps, twice as slow until then."""
    slow = 2.0 if x["d"] <= 1 else 1.0
    return 0.3 + pace(x) * (min(steps, 1500) * slow + max(0, steps - 1500))


def _fast(x: Configuration, steps: int) -> float:
    """Caches that hold the first 1000 steps of some configurations."""
    factor = 0.5 if x["b"] >= 3 else 1.0
    return 0.3 + pace(x) * (min(steps, 1000) * factor + max(0, steps - 1000))


def _iterations(x: Configuration, steps: int) -> float:
    """A whole run needs more of its steps with some configurations; a short one makes as many with each."""
    more = 1.0 if steps <= LOW else 1.0 + 0.8 * (hash_of(x) % 5) / 4.0
    return 0.3 + pace(x) * steps * more


def hash_of(x: Configuration) -> int:
    """Return a number that looks like chance."""
    return (int(x["a"]) * 7 + int(x["b"]) * 13 + int(x["c"]) * 29 + int(x["d"]) * 5) * 31 // 7


def _hidden(x: Configuration, steps: int) -> float:
    """One value of one parameter hides the best behind a slow start; few configurations have it."""
    late = 1.5 if x["c"] == 0 else 0.0
    gain = 0.8 if x["c"] == 0 else 1.0
    return 0.3 + late + pace(x) * gain * steps


PROGRAMS: dict[str, Program] = {
    "steady": Program(SPACE, lambda x, steps: 0.1 + pace(x) * steps),
    "slow start": Program(SPACE, lambda x, steps: 0.3 + 0.6 * float(x["c"]) + pace(x) * steps),
    "hidden behind its start": Program(SPACE, _hidden),
    "fast start": Program(SPACE, _fast),
    "tunes itself": Program(SPACE, _tuned),
    "iterations differ": Program(SPACE, _iterations),
    "drift": Program(SPACE, lambda x, steps: 0.1 + pace(x) * steps, lambda now_s: 1.0 + 0.15 * (int(now_s / 60) % 2)),
}


@dataclass(frozen=True)
class Ended:
    """What a study cost until tuning ended, and in `all`, in runs of the default, and how slow its winner is."""

    cost: float
    all: float
    beside_proposed: float
    beside_all: float
    whole: int
    short: int


def study(program: Program, trials: int, seed: int, *, short: bool) -> Ended:
    """Tune a program, with short runs or without."""
    executor: SimulatedExecutor

    def value_of(told: Configuration, rng: np.random.Generator) -> float:
        steps = int(told[STEPS]) or HIGH
        configuration = {name: value for name, value in told.items() if name != STEPS}
        drift = program.drift(executor.spent_s)
        return program.seconds(configuration, steps) * drift * exp(NOISE * rng.standard_normal())

    executor = SimulatedExecutor(value_of, seed)
    file = study_file(trials=trials, seed=seed)
    if short:
        section = FidelitySection(parameter=STEPS, low=LOW, high=HIGH)
        file = file.model_copy(update={"fidelity": section})
    told = LengthSimulation.of(program.space, executor, file)
    told.tune()
    tuned_s = executor.spent_s
    verdict, store = told.confirm(), told.store
    standings = Standings.of(store.trials(), SECONDS, "median")
    winner = standings.trials[verdict.winner] if verdict is not None else standings.baseline
    assert winner is not None

    def true_s(configuration: Configuration) -> float:
        return program.seconds(configuration, HIGH)

    everything = program.space.decode(program.space.all_indices())
    proposed = [true_s(trial.configuration) for trial in store.trials()]
    runs = store.runs()
    winner_s = true_s(winner.configuration)
    default_s = true_s(program.space.default())
    return Ended(
        tuned_s / default_s,
        executor.spent_s / default_s,
        winner_s / min(proposed),
        winner_s / min(map(true_s, everything)),
        sum(run.series.is_tuning for run in runs),
        sum(run.series.kind is SeriesKind.SHORT for run in runs),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--only", choices=PROGRAMS)
    chosen = parser.parse_args()
    print(f"{'program':26} {'':7} {'tuning':>20}    all  wrong of proposed  over best of space  whole  short")
    for name, program in PROGRAMS.items():
        if chosen.only not in {None, name}:
            continue
        for short in (False, True):
            ended = [study(program, chosen.trials, seed, short=short) for seed in range(chosen.seeds)]
            cost = quantiles([one.cost for one in ended], n=4)
            wrong = sum(one.beside_proposed > WRONG for one in ended)
            worst = max(one.beside_proposed for one in ended)
            over = sum(one.beside_all > WRONG for one in ended)
            print(
                f"{name:26} {'short' if short else 'whole':7} {cost[1]:6.1f} ({cost[0]:5.1f} to {cost[2]:5.1f})"
                f"  {median(one.all for one in ended):5.1f}"
                f"  {wrong:3} (worst {worst - 1:5.1%})   {over:3} of {len(ended):3}"
                f"     {median(one.whole for one in ended):6.0f} {median(one.short for one in ended):6.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
