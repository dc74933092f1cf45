"""Test how stopping runs by their pace changes the cost of studies and the quality of their winners.

    python -m benchmarks.paces.replay [--recorded] [--seeds 20] [--first 0] [--trials 50] [--only NAME]

The runner, the search and the races are the real ones; runs take simulated time. Most programs are designed to mislead
a pace: by a slow or fast start, by tuning themselves, by a number of steps that depends on the configuration, or by a
machine that drifts. In the program "alike" all configurations are equally fast. With --recorded, runs take the times of
real programs (`benchmarks/data/README.md`) times twenty, so that fixed costs of short runs do not dominate.

steps               "read": the study reads steps during a run; "silent": it does not
found               cost until the best trial was within 2 % of the best of the space, and stayed so
tuning              cost until tuning ended; costs are medians in runs of the default, quartiles in brackets
all                 the same with the rounds and pairs after tuning
wrong of proposed   winners that take over 2 % longer than the best configuration that their study proposed
over best of space  winners that take over 2 % longer than the best of the space, which also depends on the search
held, false gains   verdicts whose 95 % interval contains the true ratio of winner and default; and verdicts that claim
                    a gain for a winner that is no faster
"""

import argparse
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import exp, inf
from statistics import median

import numpy as np

from autotune.execution import simulated_executor
from autotune.records.outcome import Outcome
from autotune.records.study import Run
from autotune.statistics.standings import Standings
from benchmarks.paces.tables import Curve, PaceTable, tables
from objectives.base import FailureKind, RecordedRun
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.simulated import Simulation, study_file, told

STEPS, BLOCK = 5000, 250
NOISE = 0.01
WRONG = 1.02
LONGER = 20.0


@dataclass(frozen=True)
class Program:
    """A simulated program.

    Attributes:
        tells: Returns the steps that a run prints, as (steps, seconds).
        seconds: Returns the duration of a run; infinity if it fails.
        drift: Returns the slowdown of the machine at a time in seconds.
    """

    space: Space
    tells: Callable[[Configuration], Curve]
    seconds: Callable[[Configuration], float]
    drift: Callable[[float], float] = lambda _: 1.0


SPACE = Space([Integer.range(name, 0, 4, default=4) for name in ("a", "b", "c", "d")])


def pace(x: Configuration) -> float:
    """Return seconds per step of the made-up program: 1 to 4 ms, with an interaction."""
    a, b, c, d = (float(x[name]) / 4.0 for name in ("a", "b", "c", "d"))
    return 0.001 * (1.0 + 1.2 * (a - 0.25) ** 2 + 0.9 * abs(b - 0.5) + 0.5 * c * (1.0 - d) + 0.4 * d)


def _tuned(x: Configuration, steps: int) -> float:
    """Return the time of a program that, for `d` up to 1, takes twice as long in the first 1500 steps."""
    slow = 2.0 if x["d"] <= 1 else 1.0
    return 0.3 + pace(x) * (min(steps, 1500) * slow + max(0, steps - 1500))


def _fast(x: Configuration, steps: int) -> float:
    """Return the time of a program that, for `b` from 3 on, takes half as long in the first 1000 steps."""
    factor = 0.5 if x["b"] >= 3 else 1.0
    return 0.3 + pace(x) * (min(steps, 1000) * factor + max(0, steps - 1000))


def _hidden(x: Configuration, steps: int) -> float:
    """Return the time of a program whose fastest configurations (`c` = 0) have a slow start."""
    late = 1.5 if x["c"] == 0 else 0.0
    gain = 0.8 if x["c"] == 0 else 1.0
    return 0.3 + late + pace(x) * gain * steps


def _iterations(x: Configuration) -> int:
    """Return a number of steps that depends on the configuration in a seemingly random way."""
    chance = (int(x["a"]) * 7 + int(x["b"]) * 13 + int(x["c"]) * 29 + int(x["d"]) * 5) * 31 // 7
    return round(STEPS * (1.0 + 0.8 * (chance % 5) / 4.0))


def _program(
    until: Callable[[Configuration, int], float],
    drift: Callable[[float], float] = lambda _: 1.0,
    steps: Callable[[Configuration], int] = lambda _: STEPS,
) -> Program:
    """Return a program that prints every 250th step; `until` gives its time at a step."""

    def tells(x: Configuration) -> Curve:
        return tuple((step, until(x, step)) for step in range(BLOCK, steps(x) + 1, BLOCK))

    return Program(SPACE, tells, lambda x: until(x, steps(x)), drift)


PROGRAMS: dict[str, Program] = {
    "steady": _program(lambda x, steps: 0.1 + pace(x) * steps),
    "slow start": _program(lambda x, steps: 0.3 + 0.6 * float(x["c"]) + pace(x) * steps),
    "hidden behind its start": _program(_hidden),
    "fast start": _program(_fast),
    "tunes itself": _program(_tuned),
    "iterations differ": _program(lambda x, steps: 0.3 + pace(x) * steps, steps=_iterations),
    "alike": _program(lambda _, steps: 0.3 + 0.002 * steps),
    "drift": _program(lambda x, steps: 0.1 + pace(x) * steps, lambda now_s: 1.0 + 0.15 * (int(now_s / 60) % 2)),
}


def replayed(table: PaceTable) -> Program:
    """Return a program that takes the recorded times, multiplied by LONGER."""

    def tells(x: Configuration) -> Curve:
        return tuple((step, LONGER * seconds) for step, seconds in table.curve(x)[:-1])

    return Program(table.space, tells, lambda x: LONGER * table.seconds(x))


@dataclass(frozen=True)
class Ended:
    """The outcome of a study; costs are in runs of the default.

    Attributes:
        cost: Cost until tuning ended.
        all: Cost with the rounds and pairs after tuning.
        found: Cost until the best trial stayed within 2 % of the best of the space; None if it never did.
        beside_proposed: Time of the winner over that of the best proposed configuration.
        beside_all: Time of the winner over that of the best of the space.
        runs: Number of runs while tuning.
        holds: Whether the verdict's interval contains the true ratio; None without a verdict.
        false_gain: Whether the verdict claims a gain for a winner that is no faster.
    """

    cost: float
    all: float
    found: float | None
    beside_proposed: float
    beside_all: float
    runs: int
    holds: bool | None
    false_gain: bool


def run_study(program: Program, trials: int, seed: int, *, reads_steps: bool) -> Ended:
    """Tune a program, and make the verdict; runs print steps only if `reads_steps`."""
    executor: simulated_executor.SimulatedExecutor

    def draw(configuration: Configuration, rng: np.random.Generator, _worker: str) -> RecordedRun:
        factor = program.drift(executor.spent_s) * exp(NOISE * rng.standard_normal())
        seconds = program.seconds(configuration) * factor
        if seconds == inf:
            return told(
                Outcome(failure=FailureKind.APPLICATION_ERROR, code="recorded", message="the recorded run failed")
            )
        points = program.tells(configuration) if reads_steps else ()
        lines = tuple((at_s * factor, json.dumps({"step": step})) for step, at_s in points)
        return RecordedRun(seconds, (*lines, *told(seconds).lines))

    executor = simulated_executor.SimulatedExecutor(draw, seed)
    simulation = Simulation.of(program.space, executor, study_file(trials=trials, seed=seed))
    simulation.tune()
    tuned_s = executor.spent_s
    verdict, store = simulation.confirm(), simulation.store
    standings = Standings.of(store.trials(), SECONDS, "median")
    winner = standings.trials[verdict.winner] if verdict is not None else standings.baseline
    assert winner is not None
    true_s = {trial.number: program.seconds(trial.configuration) for trial in standings.trials.values()}
    best_s = min(program.seconds(x) for x in program.space.decode(program.space.all_indices()))
    runs = store.runs()
    default_s = program.seconds(program.space.default())
    truth, holds, claimed = default_s / true_s[winner.number], None, False
    if verdict is not None and verdict.known:
        _, low, high = verdict.interval(SECONDS)
        holds, claimed = low <= truth <= high, low > 1.0
    found_s = found_after(runs, {number for number, one in true_s.items() if one <= WRONG * best_s})
    return Ended(
        tuned_s / default_s,
        executor.spent_s / default_s,
        None if found_s is None else found_s / default_s,
        true_s[winner.number] / min(true_s.values()),
        true_s[winner.number] / best_s,
        sum(run.series.is_tuning for run in runs),
        holds,
        claimed and truth <= 1.0,
    )


def found_after(runs: Sequence[Run], good: Collection[int]) -> float | None:
    """Return the seconds of tuning until the trial with the best median was a `good` one for the rest of the study."""
    spent_s, since_s = 0.0, None
    values: dict[int, list[float]] = {}
    for run in runs:
        if not run.series.is_tuning:
            continue
        spent_s += run.outcome.usage.elapsed_s
        if run.outcome.complete:
            values.setdefault(run.trial, []).append(run.outcome.metrics[SECONDS.name])
        best = min(values, key=lambda number: median(values[number]), default=None)
        if best not in good:
            since_s = None
        elif since_s is None:
            since_s = spent_s
    return since_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recorded", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--only")
    chosen = parser.parse_args()
    programs = {name: replayed(table) for name, table in tables().items()} if chosen.recorded else PROGRAMS
    if chosen.only not in {None, *programs}:
        parser.error(f"--only is {chosen.only}: it must be one of {', '.join(programs)}")
    print(
        f"{'program':24} {'steps':6} {'found':>23} {'tuning':>23}    all  wrong of proposed  over best of space"
        "  runs  held, false gains"
    )
    for name, program in programs.items():
        if chosen.only not in {None, name}:
            continue
        for reads_steps in (False, True):
            seeds = range(chosen.first, chosen.first + chosen.seeds)
            ended = [run_study(program, chosen.trials, seed, reads_steps=reads_steps) for seed in seeds]
            print(f"{name:24} {'read' if reads_steps else 'silent':6} {row(ended)}", flush=True)


def row(ended: Sequence[Ended]) -> str:
    """Summarize the costs of studies and the quality of their winners."""
    wrong = sum(one.beside_proposed > WRONG for one in ended)
    worst = max(one.beside_proposed for one in ended)
    over = sum(one.beside_all > WRONG for one in ended)
    found = [inf if one.found is None else one.found for one in ended]
    held = [one.holds for one in ended if one.holds is not None]
    return (
        f"{spread(found)} {spread([one.cost for one in ended])}  {median(one.all for one in ended):5.1f}"
        f"  {wrong:3} (worst {worst - 1:5.1%})   {over:3} of {len(ended):3}"
        f"     {median(one.runs for one in ended):6.0f}"
        f"  {sum(held)} of {len(held)}, {sum(one.false_gain for one in ended)}"
    )


def spread(costs: Sequence[float]) -> str:
    """Return the median, and the quartiles in brackets."""
    low, middle, high = sorted(costs)[len(costs) // 4], median(costs), sorted(costs)[(3 * len(costs)) // 4]
    return f"{middle:6.1f} ({low:5.1f} to {high:5.1f})"


if __name__ == "__main__":
    main()
