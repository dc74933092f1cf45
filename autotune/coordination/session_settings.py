"""The settings of a session: where a study is stored and where it runs."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.coordination.deadline import Deadline
from autotune.durations import parse_duration_s
from autotune.errors import StudyFileError
from autotune.execution.signals import Pause
from autotune.locks import IfHeld
from autotune.machines.facts import Facts
from autotune.machines.this_machine import Machine
from autotune.storage.address import state_folder
from launchers import BatchQueue, Launcher

if TYPE_CHECKING:
    from autotune.coordination.external_executor import ExternalExecutor

STORAGE_PATIENCE = "AUTOTUNE_STORAGE_PATIENCE"

RUNS_LOCK = ".autotune-runs.lock"
"""Held in the folder of the runs by a session whose runs are jobs of a batch system."""


@dataclass(frozen=True)
class SessionSettings:
    """Where a study is stored and run, and what to do if another process holds it.

    Attributes:
        url: Address of the storage.
        name: Name of the study.
        runs: Parent of the run folders.
        machine: Where runs are made; with `ray_address`, the nodes of that cluster once it is joined.
        launcher: Starts the runs; may submit them as jobs of a batch system.
        file: The study file.
        if_held: What to do if another process holds the study.
        ray_address: Ray cluster whose nodes make the runs; None for this machine.
        ray_nodes: Number of nodes that the cluster must have before the session starts.
        deadline: When all runs must have ended.
        facts: Description of the machine that jobs get.
        pause: Whether the user asked to pause; then no further run starts.
        external: Hands runs to other programs; None if this session makes them.
        retry_failed: Whether failed trials run again.
        tune_again: Whether trials run again that were disturbed, or measured while the machine's speed differed.
    """

    url: str
    name: str
    runs: Path
    machine: Machine
    launcher: Launcher
    file: Path | None = None
    if_held: IfHeld = IfHeld.LEAVE
    ray_address: str | None = None
    ray_nodes: int = 1
    deadline: Deadline | None = None
    facts: Facts | None = None
    pause: Pause = field(default_factory=Pause)
    external: "ExternalExecutor | None" = None
    retry_failed: bool = False
    tune_again: bool = False

    @property
    def plan(self) -> Path:
        """The folder for files that a session writes before its runs."""
        return self.runs / "plan"

    @property
    def queue(self) -> BatchQueue | None:
        """The launcher of jobs, if runs are jobs of a batch system."""
        return self.launcher.queue


def storage_patience_s() -> float:
    """Return how many seconds a session waits for a storage that does not answer; 0 for no wait.

    Raises:
        StudyFileError: The environment variable is not a duration.
    """
    text = os.environ.get(STORAGE_PATIENCE, "15m")
    try:
        return 0.0 if text.strip() == "0" else parse_duration_s(text)
    except ValueError as error:
        msg = f"{STORAGE_PATIENCE} (how long a study waits for its storage; 0: not at all): {error}"
        raise StudyFileError(msg) from error


def default_runs(url: str, name: str) -> Path:
    """Return the default parent of a study's run folders: beside its storage."""
    return state_folder(url) / "autotune-runs" / name
