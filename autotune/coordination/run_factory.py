"""The run factory prepares the job of a run in a folder of its own."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.errors import StorageError
from autotune.execution.capping import Cap
from autotune.execution.run_folder import fresh_folder
from autotune.execution.segments import Segment
from autotune.execution.task import Task
from objectives.base import Alike, Answer, Context, MemoryNeed, Objective
from spaces import Configuration


@dataclass(frozen=True)
class RunFactory:
    """Makes tasks from configurations of one objective.

    Attributes:
        objective: Makes the jobs and reads their output.
        folder: Parent of the run folders.
        run_time_limit_s: Time limit of a run in seconds; None without one.
        retries: How often a run is repeated that failed for a reason other than its configuration.
        whole: Number of steps of a program that works in steps, unless promotion decides it.
        alike: Tells which configurations have the same effect, according to the objective.
        memory: How much memory runs need, according to the objective.
        in_folders: Whether runs have folders; those that other programs make have only names.
    """

    objective: Objective
    folder: Path
    run_time_limit_s: float | None = None
    retries: int = 2
    whole: Segment | None = None
    alike: Alike | None = None
    memory: MemoryNeed | None = None
    in_folders: bool = True

    def task(  # noqa: PLR0913  by keyword
        self,
        key: int,
        configuration: Configuration,
        name: str,
        *,
        reference: Answer | None = None,
        cap: Cap | None = None,
        segment: Segment | None = None,
        seed: int = 0,
        known: Mapping[str, float] | None = None,
    ) -> Task:
        """Return the run of a configuration, prepared in an empty folder; without a `segment`, a whole run."""
        segment = segment or self.whole
        context = Context(
            folder=fresh_folder(self.folder / name) if self.in_folders else self.folder / name,
            time_limit_s=self.run_time_limit_s,
            steps=segment.steps if segment else None,
            checkpoint=segment.checkpoint if segment else None,
            seed=seed,
            known=known or {},
        )
        try:
            job = replace(self.objective.job(configuration, context), name=name)
        except OSError as error:
            msg = f"cannot write the files of a run into {context.folder}: {error.filename or ''}: {error.strerror}"
            raise StorageError(msg) from error
        return Task(key, job, self.objective, reference, cap, segment, seed)
