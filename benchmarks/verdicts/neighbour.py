"""Simulate studies beside a neighbour on their cores, with and without detection of disturbed runs.

    python benchmarks/verdicts/neighbour.py [--studies 40] [--trials 20] [--seed 0] [--only NAME]

Prints false gains, refusals, and runs and wall time as ratios to a quiet machine. The parameters have no effect (A/A),
so every claimed gain is false. The runner, the detection of disturbed runs and the verdict are the real ones; runs and
the neighbour take simulated time. While the neighbour works, runs get the remaining share of the cores; a program whose
ranks wait for the slowest one runs at the square of that rate. The neighbour's share is measured with an error of 10 %.
The mode `accept` does not detect disturbed runs.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf
from pathlib import Path
from statistics import fmean, median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from autotune import __version__
from autotune.coordination.disturbances import Disturbances, expected_runs
from autotune.coordination.quiet_machine import QuietMachine, Use
from autotune.coordination.run_manager import RunManager
from autotune.errors import CannotRunHereError
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.statistics.verdict import Verdict
from autotune.studyfile import NoiseMode, NoiseSection
from benchmarks.verdicts.trust import share
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.simulated import SimulatedExecutor, Simulation, study_file

SPACE = Space([Integer.range(name, 1, 4, default=1) for name in ("a", "b", "c", "d")])
RUN_S = 20.0
NOISE = 0.03
_STREAM = 10**6
_STEP_S = 1.0


@dataclass(frozen=True)
class Neighbour:
    """Another program: takes the share `level` of the cores for `on_s` on average, then pauses for `off_s`.

    Runs proceed at the remaining share of the cores to the `power`.
    """

    level: float
    on_s: float
    off_s: float
    power: float = 1.0

    def levels(self, rng: np.random.Generator) -> Iterator[float]:
        """Yield the share of the cores that it takes in each second."""
        while True:
            for level, mean_s in ((0.0, self.off_s), (self.level, self.on_s)):
                left_s = mean_s if mean_s in {0.0, inf} else rng.exponential(mean_s)
                while left_s > 0.0:
                    yield level
                    left_s -= _STEP_S


NEIGHBOURS = {
    "nobody": Neighbour(0.0, 0.0, inf),
    "bursts, 1 in 4": Neighbour(0.5, 20.0, 60.0),
    "bursts, 1 in 2": Neighbour(0.5, 40.0, 40.0),
    "hours": Neighbour(0.5, 3000.0, 3000.0),
    "hours, ranks": Neighbour(0.5, 3000.0, 3000.0, power=2.0),
    "always, half": Neighbour(0.5, inf, 0.0),
    "always, all": Neighbour(0.9, inf, 0.0),
}


class SharedMachine(SimulatedExecutor):
    """Runs beside a neighbour, in simulated time."""

    def __init__(self, neighbour: Neighbour, seed: int) -> None:
        super().__init__(self._drawn, seed)
        self._neighbour = neighbour
        self._levels = neighbour.levels(np.random.default_rng([seed, _STREAM]))
        self._known: list[float] = []
        self._rng = np.random.default_rng([seed, _STREAM + 1])
        self._taken = 0.0
        self._shares: dict[str, float] = {}

    def submit(self, task: Task) -> None:
        super().submit(task)
        self._shares[task.job.name] = self._taken

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        ended = super().wait(timeout_s)
        return [
            (task, replace(outcome, conditions={"taken_share": self._shares[task.job.name]})) for task, outcome in ended
        ]

    def use(self) -> Use:
        """The present use of the cores by the neighbour."""
        return Use(self._level(self.clock()), "788 python")

    def pass_time(self, seconds: float) -> None:
        self._now_s += seconds

    def _level(self, at_s: float) -> float:
        second = int(at_s / _STEP_S)
        while len(self._known) <= second:
            self._known.append(next(self._levels))
        return self._known[second]

    def _drawn(self, configuration: Configuration, rng: np.random.Generator) -> float:
        del configuration, rng
        return self.run_s(RUN_S, NOISE)

    def run_s(self, quiet_s: float, noise: float) -> float:
        """Return the duration of a run that starts now and takes `quiet_s`, times noise, on a quiet machine."""
        left_s, now_s, taken_s = quiet_s * exp(noise * self._rng.standard_normal()), self.clock(), 0.0
        while True:
            level = self._level(now_s)
            rate = (1.0 - level) ** self._neighbour.power
            passed_s = min(_STEP_S, left_s / rate)
            now_s += passed_s
            taken_s += passed_s * level
            left_s -= passed_s * rate
            if left_s <= 1e-9:
                break
        elapsed_s = now_s - self.clock()
        self._taken = min(0.001 + taken_s / elapsed_s * exp(0.1 * self._rng.standard_normal()), 0.99)
        return elapsed_s


@dataclass(frozen=True)
class Beside(Simulation):
    """A study beside a neighbour."""

    judge: Disturbances = field(default_factory=lambda: Disturbances(SECONDS))

    def _manager(self, folder: str) -> RunManager:
        manager = super()._manager(folder)
        machine, section = self.executor, NoiseSection()
        assert isinstance(machine, SharedMachine)
        manager.disturbances = self.judge
        manager.quiet = QuietMachine.of((0,), section, self.judge.mode)
        if manager.quiet is not None:
            manager.quiet.look, manager.quiet.pause = lambda _: machine.use(), machine.pass_time
        return manager


@dataclass(frozen=True)
class Ended:
    """How a study ended: with its verdict, or `refused`."""

    verdict: Verdict | None
    refused: bool
    runs: int
    wall_s: float

    @property
    def gain(self) -> bool:
        return self.verdict is not None and self.verdict.significant(SECONDS)


def run_study(neighbour: Neighbour, mode: NoiseMode, trials: int, seed: int) -> Ended:
    machine = SharedMachine(neighbour, seed)
    study = Beside.of(SPACE, machine, study_file(trials=trials, seed=seed))
    # Tuning and verdict share one session, and so one detection of disturbed runs.
    judge = Disturbances.of(NoiseSection(mode=mode), SECONDS, (), lambda _: None, expected_runs(study.study))
    study = replace(study, judge=judge)
    verdict, refused = None, False
    try:
        study.tune()
        verdict = study.confirm()
    except CannotRunHereError:
        refused = True
    return Ended(verdict, refused, machine.runs, machine.clock())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=40, help="simulated studies per row")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only neighbours whose name contains this text")
    options = parser.parse_args()
    print(f"autotune {__version__}, {options.studies} studies of {options.trials} trials a row, seed {options.seed}")
    quiet: list[Ended] = []
    for name, neighbour in NEIGHBOURS.items():
        if options.only and options.only not in name and name != "nobody":
            continue
        for mode in ("accept", "wait"):
            start = time.perf_counter()
            studies = [
                run_study(neighbour, mode, options.trials, options.seed + number) for number in range(options.studies)
            ]
            quiet = quiet or studies
            print(
                "  " + "; ".join(f"{key}: {value}" for key, value in row(name, mode, studies, quiet).items()),
                flush=True,
            )
            print(f"  ({time.perf_counter() - start:.0f} s)", file=sys.stderr)


def row(name: str, mode: str, studies: Sequence[Ended], quiet: Sequence[Ended]) -> dict[str, str]:
    """Summarize the studies beside a neighbour, with ratios to studies on a quiet machine."""
    widths = [(high / low) ** 0.5 - 1 for s in studies if s.verdict and s.verdict.known for _, low, high in [_of(s)]]
    return {
        "neighbour": name,
        "noise": mode,
        "false gains": share(sum(study.gain for study in studies), len(studies)),
        "refused": str(sum(study.refused for study in studies)),
        "half width": f"{median(widths):.1%}" if widths else "none",
        "runs against quiet": f"{_ratio([s.runs for s in studies], [s.runs for s in quiet]):.2f}",
        "wall time against quiet": f"{_ratio([s.wall_s for s in studies], [s.wall_s for s in quiet]):.2f}",
        "at most": f"{max(s.wall_s for s in studies) / fmean(s.wall_s for s in quiet):.2f}",
    }


def _of(study: Ended) -> tuple[float, float, float]:
    assert study.verdict is not None
    return study.verdict.interval(SECONDS)


def _ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return fmean(ours) / fmean(theirs)


if __name__ == "__main__":
    main()
