"""Simulated studies: the real tuning loop and the real verdict, with runs in simulated time.

Shared by `test_trust.py` and `benchmarks/verdicts/trust.py`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from autotune.comparison.confirm import confirm
from autotune.coordination.run_manager import RunManager
from autotune.execution import simulated_executor
from autotune.execution.core_pool import CorePool
from autotune.records.outcome import Outcome
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.statistics.verdict import Verdict
from autotune.storage.study_store import StudyStore
from autotune.studyfile import BudgetSection, RepeatsSection, SamplerSection, StudyFile, VerdictSection
from autotune.tuning.loop import Ending, TuningLoop
from objectives.base import RecordedRun
from objectives.replay.objective import ReplayObjective
from objectives.replay.table import RecordedTable
from spaces import Configuration, Space
from tests.support.fakes import SECONDS, definition
from tests.support.managers import managed

ValueOf = Callable[[Configuration, np.random.Generator], float | Outcome]
"""Draw a run of a configuration: its seconds, or its failure."""


def objective() -> ReplayObjective:
    """Return the objective of a replay without a table; its executor makes the runs."""
    return ReplayObjective(RecordedTable((), SECONDS, {}))


class SimulatedExecutor(simulated_executor.SimulatedExecutor):
    """The executor of a replay, with runs from a function."""

    def __init__(self, value_of: ValueOf, seed: int) -> None:
        super().__init__(lambda configuration, rng, _worker: told(value_of(configuration, rng)), seed)


def told(drawn: float | Outcome, steps: int = 0) -> RecordedRun:
    """Return a run that takes the drawn seconds if nothing stops it, with equal steps, or fails at once."""
    if isinstance(drawn, Outcome):
        assert drawn.failure is not None
        said = {"failure": drawn.failure.value, "code": drawn.code, "message": drawn.message}
        return RecordedRun(0.0, ((0.0, json.dumps(said)),))
    lines = [(drawn * step / steps, json.dumps({"step": step})) for step in range(1, steps + 1)]
    return RecordedRun(drawn, (*lines, (drawn, json.dumps({SECONDS.name: drawn}))))


@dataclass(frozen=True)
class Simulation:
    """A study in memory, and the executor of its runs."""

    executor: SimulatedExecutor
    study: StudyFile
    asker: Asker

    @classmethod
    def of(cls, space: Space, executor: SimulatedExecutor, study: StudyFile) -> "Simulation":
        asker = Asker(StudyStore.in_memory(definition(space)), sampler_of(space, study.sampler))
        return cls(executor, study, asker)

    @property
    def store(self) -> StudyStore:
        return self.asker.store

    def tune(self, trials: int | None = None) -> Ending:
        """Tune until there are `trials`, by default as many as the study file says."""
        budget = self.study.budget if trials is None else BudgetSection(trials=trials)
        study = self.study.model_copy(update={"budget": budget})
        with TemporaryDirectory() as folder:
            return TuningLoop(self.asker, self._manager(folder), study).tune()

    def confirm(self) -> Verdict | None:
        with TemporaryDirectory() as folder:
            return confirm(self.store, self._manager(folder), self.study)

    def _manager(self, folder: str) -> RunManager:
        return managed(self.executor, Path(folder), objective=objective(), pool=CorePool(range(1)))


def simulated_study(
    space: Space,
    executor: SimulatedExecutor,
    *,
    trials: int,
    seed: int,
    repeats: RepeatsSection | None = None,
    verdict: VerdictSection | None = None,
    sampler: str = "autotune",
) -> tuple[StudyStore, Verdict | None, SimulatedExecutor]:
    """Tune and confirm; the verdict is None if nothing looked better than the default configuration."""
    study = study_file(trials=trials, seed=seed, repeats=repeats, verdict=verdict, sampler=sampler)
    simulation = Simulation.of(space, executor, study)
    simulation.tune()
    return simulation.store, simulation.confirm(), executor


def study_file(
    *,
    trials: int = 50,
    seed: int = 0,
    repeats: RepeatsSection | None = None,
    verdict: VerdictSection | None = None,
    sampler: str = "autotune",
) -> StudyFile:
    """Return a study file with default settings, except for these."""
    return StudyFile(
        name="simulated",
        objective="simulated",
        budget=BudgetSection(trials=trials),
        sampler=SamplerSection(name=sampler, seed=seed),
        repeats=repeats or RepeatsSection(),
        verdict=verdict or VerdictSection(),
    )
