"""Short runs that stand for long ones: what a study costs with and without `[fidelity]`, and how good its winner is.

    python benchmarks/fidelity.py [--recorded] [--seeds 20] [--first 0] [--trials 50] [--only NAME]

The runner, the search and the races are the real ones; runs take simulated time. Most programs are made to fool short
runs: by a start that is slow or fast, by tuning themselves, by a number of iterations that depends on the
configuration, by a machine that drifts. `tuning` is the median of what a study takes until tuning ends, in runs of the
default; in brackets the quartiles; `all` is that with the rounds and pairs at the end. The winner is the one that the
study names, after these. It is wrong if it takes over 2 % longer than the best configuration that this study has
proposed: that is what short runs may spoil; over the best of the space it is the search's part, too. `held` counts the
verdicts whose 95 % interval holds the true ratio of winner and default, and gains that are claimed of a winner that is
no faster; `alike` is a space in which nothing is to be gained.

With `--recorded` runs take the time that real programs took (`benchmarks/data/README.md`), twenty times as long, so
that what holds for runs of a second does not decide. "told" means that steps are read on the way. `found` is what
passed until the best by whole runs was within 2 % of the best of the space, and stayed so; `promoted` are trials that a
short run had and a whole one after it, and how many of these take over 2 % longer than the best that was proposed.
"""

import argparse
import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, inf
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from autotune.execution import simulated_executor
from autotune.records.outcome import Outcome
from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.statistics.standings import Standings
from autotune.studyfile.fidelity import FidelitySection
from benchmarks.paces.tables import Curve, PaceTable, tables
from objectives.base import FailureKind, RecordedRun
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.lengths import STEPS, LengthSimulation
from tests.support.simulated import study_file, told

LOW, HIGH = 500, 5000
BLOCK = 250
NOISE = 0.01
WRONG = 1.02
LONGER = 20.0


@dataclass(frozen=True)
class Program:
    """`seconds` that a configuration takes for a number of steps; `drift` is how slow the machine is at a time.

    `tells` gives (steps, seconds) of what a run prints on its way.
    """

    space: Space
    seconds: Callable[[Configuration, int], float]
    drift: Callable[[float], float] = lambda _: 1.0
    low: int = LOW
    high: int = HIGH
    tells: Callable[[Configuration, int], Curve] = lambda *_: ()


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


def _program(
    seconds: Callable[[Configuration, int], float], drift: Callable[[float], float] = lambda _: 1.0
) -> Program:
    """Return a made-up program, which tells every 250th step."""

    def tells(x: Configuration, steps: int) -> Curve:
        return tuple((step, seconds(x, step)) for step in range(BLOCK, steps + 1, BLOCK))

    return Program(SPACE, seconds, drift, tells=tells)


def _told_iterations(x: Configuration, steps: int) -> Curve:
    """Tell the steps that a run makes, which are more with some configurations."""
    more = 1.0 if steps <= LOW else 1.0 + 0.8 * (hash_of(x) % 5) / 4.0
    return tuple((step, 0.3 + pace(x) * step) for step in range(BLOCK, round(steps * more) + 1, BLOCK))


PROGRAMS: dict[str, Program] = {
    "steady": _program(lambda x, steps: 0.1 + pace(x) * steps),
    "slow start": _program(lambda x, steps: 0.3 + 0.6 * float(x["c"]) + pace(x) * steps),
    "hidden behind its start": _program(_hidden),
    "fast start": _program(_fast),
    "tunes itself": _program(_tuned),
    "iterations differ": Program(SPACE, _iterations, tells=_told_iterations),
    "alike": _program(lambda _, steps: 0.3 + 0.002 * steps),
    "drift": _program(lambda x, steps: 0.1 + pace(x) * steps, lambda now_s: 1.0 + 0.15 * (int(now_s / 60) % 2)),
}


def replayed(table: PaceTable) -> Program:
    """Return a program that takes the time that was recorded, but longer."""

    def tells(x: Configuration, steps: int) -> Curve:
        curve = table.told(x, steps) or ()
        return tuple((step, LONGER * seconds) for step, seconds in curve[:-1])

    def seconds(x: Configuration, steps: int) -> float:
        return LONGER * table.seconds(x, steps)

    return Program(table.space, seconds, low=table.low, high=table.high, tells=tells)


@dataclass(frozen=True)
class Ended:
    """What a study cost until tuning ended, and in `all`, in runs of the default, and how slow its winner is.

    `found` is the cost until the best by whole runs stayed within 2 % of the best of the space; None if it never did.
    The verdict's interval `holds` the true ratio or not, None without a verdict; `false_gain` is one that is none.
    """

    cost: float
    all: float
    found: float | None
    beside_proposed: float
    beside_all: float
    whole: int
    short: int
    promoted: int
    in_vain: int
    holds: bool | None
    false_gain: bool


def study(program: Program, trials: int, seed: int, *, short: bool, steps_told: bool = False) -> Ended:
    """Tune a program, with short runs or without; what a run prints on its way is read if `steps_told`."""
    executor: simulated_executor.SimulatedExecutor

    def draw(asked: Configuration, rng: np.random.Generator, _worker: str) -> RecordedRun:
        steps = int(asked[STEPS]) or program.high
        configuration = {name: value for name, value in asked.items() if name != STEPS}
        factor = program.drift(executor.spent_s) * exp(NOISE * rng.standard_normal())
        seconds = program.seconds(configuration, steps) * factor
        if seconds == inf:
            return told(Outcome(failure=FailureKind.APPLICATION_ERROR, code="recorded", message="it had failed"))
        points = program.tells(configuration, steps) if steps_told else ()
        lines = tuple((at_s * factor, json.dumps({"step": step})) for step, at_s in points)
        return RecordedRun(seconds, (*lines, *told(seconds).lines))

    executor = simulated_executor.SimulatedExecutor(draw, seed)
    file = study_file(trials=trials, seed=seed)
    if short:
        section = FidelitySection(parameter=STEPS, low=program.low, high=program.high)
        file = file.model_copy(update={"fidelity": section})
    simulation = LengthSimulation.of(program.space, executor, file)
    simulation.tune()
    tuned_s = executor.spent_s
    verdict, store = simulation.confirm(), simulation.store
    standings = Standings.of(store.trials(), SECONDS, "median")
    winner = standings.trials[verdict.winner] if verdict is not None else standings.baseline
    assert winner is not None
    assert standings.default is not None
    true_s = {trial.number: program.seconds(trial.configuration, program.high) for trial in standings.trials.values()}
    everything = program.space.decode(program.space.all_indices())
    best_s = min(program.seconds(x, program.high) for x in everything)
    runs = store.runs()
    shortened = {run.trial for run in runs if run.series.kind is SeriesKind.SHORT}
    promoted = (shortened - {standings.default.number}) & {run.trial for run in runs if run.series.is_tuning}
    default_s = program.seconds(program.space.default(), program.high)
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
        sum(run.series.kind is SeriesKind.SHORT for run in runs),
        len(promoted),
        sum(true_s[number] > WRONG * min(true_s.values()) for number in promoted),
        holds,
        claimed and truth <= 1.0,
    )


def found_after(runs: Sequence[Run], good: Collection[int]) -> float | None:
    """Return the seconds until the trial with the best median of whole runs was a `good` one, and stayed so."""
    spent_s, since_s = 0.0, None
    values: dict[int, list[float]] = {}
    for run in runs:
        if not (run.series.is_tuning or run.series.kind is SeriesKind.SHORT):
            continue
        spent_s += run.outcome.usage.elapsed_s
        if run.series.is_tuning and run.outcome.complete:
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
        f"{'program':24} {'runs':11} {'found':>20} {'tuning':>20}    all  wrong of proposed  over best of space"
        "  whole  short  promoted  held, false gains"
    )
    for name, program in programs.items():
        if chosen.only not in {None, name}:
            continue
        for short, steps_told in product((False, True), (False, True)):
            seeds = range(chosen.first, chosen.first + chosen.seeds)
            ended = [study(program, chosen.trials, seed, short=short, steps_told=steps_told) for seed in seeds]
            kind = ("short" if short else "whole") + (", told" if steps_told else "")
            print(f"{name:24} {kind:11} {row(ended)}", flush=True)


def row(ended: Sequence[Ended]) -> str:
    """Return what studies of one kind have cost, and how good their winners are."""
    wrong = sum(one.beside_proposed > WRONG for one in ended)
    worst = max(one.beside_proposed for one in ended)
    over = sum(one.beside_all > WRONG for one in ended)
    found = [inf if one.found is None else one.found for one in ended]
    held = [one.holds for one in ended if one.holds is not None]
    return (
        f"{spread(found)} {spread([one.cost for one in ended])}  {median(one.all for one in ended):5.1f}"
        f"  {wrong:3} (worst {worst - 1:5.1%})   {over:3} of {len(ended):3}"
        f"     {median(one.whole for one in ended):6.0f} {median(one.short for one in ended):6.0f}"
        f"  {sum(one.promoted for one in ended) / len(ended):.1f}, {sum(one.in_vain for one in ended) / len(ended):.1f}"
        f"  {sum(held)} of {len(held)}, {sum(one.false_gain for one in ended)}"
    )


def spread(costs: Sequence[float]) -> str:
    """Return the median, and the quartiles in brackets."""
    low, middle, high = sorted(costs)[len(costs) // 4], median(costs), sorted(costs)[(3 * len(costs)) // 4]
    return f"{middle:6.1f} ({low:5.1f} to {high:5.1f})"


if __name__ == "__main__":
    main()
