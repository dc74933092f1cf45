"""Simulated programs that are told how long a run is."""

from dataclasses import dataclass
from pathlib import Path

from autotune.coordination.run_manager import RunManager
from autotune.execution.core_pool import CorePool
from launchers import Job
from objectives.base import Context, Measurement, Metric, Output, ProgressReader
from objectives.replay.objective import ReplayObjective
from spaces import Configuration
from tests.support.managers import managed
from tests.support.simulated import Simulation, objective

STEPS = "steps"


@dataclass(frozen=True)
class LengthObjective:
    """The objective of a replay, whose jobs have the length of the run among their values; `whole` is a whole one's."""

    replay: ReplayObjective
    whole: int

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return self.replay.metrics

    def job(self, configuration: Configuration, context: Context) -> Job:
        return self.replay.job({**configuration, STEPS: context.steps or self.whole}, context)

    def progress_reader(self) -> ProgressReader:
        return self.replay.progress_reader()

    def measure(self, output: Output) -> Measurement:
        return self.replay.measure(output)


class LengthSimulation(Simulation):
    """A study of a program that is told how long a run is."""

    def _manager(self, folder: str) -> RunManager:
        section = self.study.fidelity
        told = LengthObjective(objective(), section.high if section is not None else 0)
        return managed(self.executor, Path(folder), objective=told, pool=CorePool(range(1)))
