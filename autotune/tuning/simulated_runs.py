"""The runs of a replay: no machine makes them, and their folders are temporary."""

from collections.abc import Iterator
from contextlib import contextmanager

from autotune.coordination.nodes import Nodes
from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.coordination.run_registry import RunRegistry
from autotune.display.console import Display
from autotune.execution.core_pool import CorePool
from autotune.execution.halves import Halves
from autotune.execution.signals import Pause
from autotune.execution.simulated_executor import SimulatedExecutor
from autotune.held_folders import temporary_folder
from autotune.studyfile import StudyFile
from objectives.base import Plan

_HOST = "replay"
# The cores are counted and never used: recorded runs do not wait for one another.
_CORES = 1024


@contextmanager
def simulated_runs(plan: Plan, study: StudyFile, display: Display, pause: Pause | None = None) -> Iterator[RunManager]:
    """Provide the manager of the runs of a replay, which end in simulated time."""
    assert plan.recorded is not None
    executor = SimulatedExecutor(plan.recorded, study.sampler.seed)
    with temporary_folder("replay") as folder:
        yield RunManager(
            executor,
            CorePool(range(_CORES)),
            RunFactory(plan.objective, folder, study.budget.run_time_limit_s),
            RunGate(pause=pause or Pause(), clock=executor.clock),
            RunRegistry(executor),
            display,
            session={"host": _HOST},
            nodes=Nodes(plan.workers),
            halves=Halves(why="recorded runs have no cores"),
        )
