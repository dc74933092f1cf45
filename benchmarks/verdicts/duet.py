"""Compare verdicts by duets with interleaved ones beside other load on the cores: width, false gains and cost.

    python benchmarks/verdicts/duet.py [--studies 100] [--pairs 12] [--seed 0] [--only NAME]

Winner and default are compared in `--pairs` pairs, so every mode uses the same core time. In half of the studies both
are equally fast, and every claimed gain is false; in the others the winner is 1.25 times as fast. Simulated studies use
the real verdict, modes and detection of disturbed runs; runs and neighbours take simulated time. A neighbour uses both
halves of the cores, or one of them. Programs in a duet may slow each other, the default more than the winner.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import fmean, median

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from autotune import __version__
from autotune.coordination.disturbances import Disturbances, expected_runs
from autotune.coordination.quiet_machine import QuietMachine
from autotune.coordination.run_manager import RunManager
from autotune.errors import CannotRunHereError
from autotune.execution.core_pool import CorePool
from autotune.execution.halves import Halves
from autotune.execution.task import Task
from autotune.statistics.verdict import Verdict
from autotune.studyfile import NoiseMode, NoiseSection, VerdictMode, VerdictSection
from benchmarks.verdicts.neighbour import Neighbour, SharedMachine
from benchmarks.verdicts.trust import share
from spaces import Configuration, Integer, Space
from tests.support.fakes import SECONDS
from tests.support.managers import managed
from tests.support.simulated import Simulation, objective, study_file

SPACE = Space([Integer.range("a", 1, 2, default=1)])
MODES: tuple[VerdictMode, ...] = ("interleaved", "duet", "auto")
_NOISES: tuple[NoiseMode, ...] = ("accept", "wait")
GAIN = 1.25
_RUN_S, _NOISE = 20.0, 0.02


@dataclass(frozen=True)
class Setting:
    """A neighbour, on both halves of the cores if `alike`; `contention` slows (default, winner) in a duet."""

    neighbour: Neighbour
    alike: bool = True
    contention: tuple[float, float] = (1.0, 1.0)


SETTINGS = {
    "nobody": Setting(Neighbour(0.0, 0.0, inf)),
    "bursts, 1 in 2": Setting(Neighbour(0.5, 40.0, 40.0)),
    "short bursts, 1 in 2": Setting(Neighbour(0.5, 4.0, 4.0)),
    "always, half": Setting(Neighbour(0.5, inf, 0.0)),
    "bursts, on one half": Setting(Neighbour(0.5, 40.0, 40.0), alike=False),
    "both slowed equally": Setting(Neighbour(0.0, 0.0, inf), contention=(1.3, 1.3)),
    "default slowed": Setting(Neighbour(0.0, 0.0, inf), contention=(1.1, 1.0)),
}


class TwoHalves(SharedMachine):
    """A machine of two cores with neighbours. While tuning the winner is always faster; in the verdict by `gain`."""

    def __init__(self, setting: Setting, gain: float, seed: int) -> None:
        super().__init__(setting.neighbour, seed)
        self._setting, self._gain = setting, gain
        self._others = SharedMachine(setting.neighbour, seed + 10**7)
        self._name, self._cpu = "", 0

    def submit(self, task: Task) -> None:
        self._name, self._cpu = task.job.name, task.job.resources.cpus[0]
        super().submit(task)

    def _level(self, at_s: float) -> float:
        return super()._level(at_s) if self._setting.alike or self._cpu == 0 else self._others._level(at_s)

    def _drawn(self, configuration: Configuration, rng: np.random.Generator) -> float:
        del rng
        is_winner = configuration["a"] == 2
        gain = self._gain if self._name.startswith(("duet-", "verdict-")) else GAIN
        slowed = self._setting.contention[is_winner] if self._name.startswith("duet-") else 1.0
        return self.run_s(_RUN_S * slowed / (gain if is_winner else 1.0), _NOISE)


@dataclass(frozen=True)
class Compared(Simulation):
    """A study on a machine of two cores."""

    mode: NoiseMode = "wait"

    def _manager(self, folder: str) -> RunManager:
        machine, section = self.executor, NoiseSection(mode=self.mode)
        assert isinstance(machine, SharedMachine)
        manager = managed(machine, Path(folder), objective=objective(), pool=CorePool(range(2)))
        manager.halves = Halves(((0,), (1,)))
        manager.disturbances = Disturbances.of(
            section, SECONDS, self.store.runs(), lambda _: None, expected_runs(self.study)
        )
        manager.quiet = QuietMachine.of((0, 1), section, self.mode)
        if manager.quiet is not None:
            manager.quiet.look, manager.quiet.pause = lambda _: machine.use(), machine.pass_time
        return manager


@dataclass(frozen=True)
class Asked:
    """The settings of a verdict, and the true gain of the winner."""

    mode: VerdictMode
    noise: NoiseMode
    gain: float
    pairs: int


@dataclass(frozen=True)
class Ended:
    """The verdict of a study (None if it was refused) and its cost."""

    verdict: tuple[float, float, float] | None
    mode: str
    core_s: float
    wall_s: float


def run_simulated(setting: Setting, asked: Asked, seed: int) -> Ended:
    """Tune on a quiet machine, then make the verdict beside the neighbour."""
    machine = TwoHalves(replace(setting, neighbour=SETTINGS["nobody"].neighbour), asked.gain, seed)
    section = VerdictSection(candidates=1, pairs=asked.pairs, max_pairs=asked.pairs, mode=asked.mode)
    study = Compared.of(SPACE, machine, study_file(trials=2, seed=seed, verdict=section))
    study.tune()
    beside = TwoHalves(setting, asked.gain, seed)
    verdict: Verdict | None = None
    with suppress(CannotRunHereError):
        verdict = Compared(beside, study.study, study.asker, asked.noise).confirm()
    known = verdict.interval(SECONDS) if verdict is not None and verdict.known else None
    return Ended(known, verdict.mode if verdict is not None else "", beside.spent_s, beside.clock())


def row(name: str, mode: str, noise: str, same: Sequence[Ended], faster: Sequence[Ended]) -> dict[str, str]:
    """Summarize the studies of one mode: `same` have equally fast configurations, `faster` a true gain."""
    told = [one.verdict for one in same if one.verdict is not None]
    right = [one.verdict for one in faster if one.verdict is not None]
    widths = [[(high / low) ** 0.5 - 1.0 for _, low, high in some] for some in (told, right)]
    every = [*same, *faster]
    return {
        "neighbour": name,
        "noise": noise,
        "mode": mode,
        "duets": f"{sum(one.mode == 'duet' for one in every)} of {len(every)}",
        "refused": f"{len(every) - len(told) - len(right)}",
        "false gains": share(sum(low > 1.0 for _, low, _ in told), len(told)) if told else "none",
        "half width": f"{median(widths[0]):.2%}" if told else "none",
        "of a gain": f"{median(widths[1]):.2%}" if right else "none",
        "holds the gain": share(sum(low <= GAIN <= high for _, low, high in right), len(right)) if right else "none",
        "core-seconds": f"{fmean(one.core_s for one in every):.0f}",
        "wall time": f"{fmean(one.wall_s for one in every):.0f} s",
    }


def simulated(options: argparse.Namespace) -> Iterator[dict[str, str]]:
    """Yield the rows of simulated studies."""
    for name, setting in SETTINGS.items():
        if options.only and options.only not in name:
            continue
        for noise in _NOISES:
            for mode in MODES:
                asked = [Asked(mode, noise, gain, options.pairs) for gain in (1.0, GAIN)]
                seeds = range(options.seed, options.seed + options.studies)
                found = [[run_simulated(setting, one, seed) for seed in seeds] for one in asked]
                yield row(name, mode, noise, *found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=100, help="studies per row without a gain, and with one")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="only neighbours whose name contains this text")
    options = parser.parse_args()
    print(f"autotune {__version__}, {options.studies} studies a row, {options.pairs} pairs, seed {options.seed}")
    for told in simulated(options):
        print("  " + "; ".join(f"{key}: {value}" for key, value in told.items()), flush=True)


if __name__ == "__main__":
    main()
