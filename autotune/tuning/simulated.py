"""The runs of a replay: no machine makes them, and their folders are forgotten."""

from collections.abc import Iterator
from contextlib import contextmanager

from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.coordination.run_registry import RunRegistry
from autotune.display.console import Display
from autotune.execution.core_pool import CorePool
from autotune.execution.signals import Pause
from autotune.execution.simulated_executor import SimulatedExecutor
from autotune.lockfile import temporary_folder
from autotune.studyfile import StudyFile
from objectives.base import Draw, Objective

_HOST = "replay"
# They are counted, not used: recorded runs do not wait for one another.
_CORES = 1024


@contextmanager
def simulated_runs(
    objective: Objective, draw: Draw, study: StudyFile, display: Display, pause: Pause | None = None
) -> Iterator[RunManager]:
    """Provide the manager of the runs of a replay, which take place in simulated time."""
    executor = SimulatedExecutor(draw, study.sampler.seed)
    with temporary_folder("replay") as folder:
        yield RunManager(
            executor,
            CorePool(range(_CORES)),
            RunFactory(objective, folder, study.budget.run_time_limit_s),
            RunGate(pause=pause or Pause(), clock=executor.clock),
            RunRegistry(executor),
            display,
            session={"host": _HOST},
        )
