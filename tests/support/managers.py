"""Make a run manager around a fake executor, without a session."""

from collections.abc import Mapping
from pathlib import Path

from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.coordination.run_registry import RunRegistry
from autotune.display.console import Display
from autotune.execution.core_pool import CorePool, Pool
from autotune.execution.executor import Executor
from autotune.execution.segments import Segment
from objectives.base import Objective
from tests.support.fakes import ListDisplay, PaperObjective


def managed(
    executor: Executor,
    folder: Path,
    *,
    objective: Objective | None = None,
    pool: Pool | None = None,
    display: Display | None = None,
    gate: RunGate | None = None,
    whole: Segment | None = None,
    retries: int = 2,
    scheduler: str = "",
    session: Mapping[str, str] | None = None,
) -> RunManager:
    """Return a run manager, by default of the paper objective on 64 cores."""
    return RunManager(
        executor,
        pool or CorePool(range(64)),
        RunFactory(objective or PaperObjective(), folder, whole=whole, retries=retries),
        gate or RunGate(jobs_stay=bool(scheduler)),
        RunRegistry(executor, scheduler=scheduler),
        display or ListDisplay(),
        session=session or {},
    )
