"""Session settings: where a study is kept and run."""

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
    from autotune.coordination.external_runs import ExternalExecutor

STORAGE_PATIENCE = "AUTOTUNE_STORAGE_PATIENCE"

RUNS_LOCK = ".autotune-runs.lock"
"""Held in the folder of the runs by a session whose runs are jobs of a batch system."""


@dataclass(frozen=True)
class SessionSettings:
    """Where a study is kept and run, and what is done if somebody else holds it there.

    `runs` is the folder for the folders of its runs, `file` the study file. Runs are made on this `machine`; or, with a
    launcher of jobs, on the machine that the jobs get, of which somebody has described the `facts`. With `ray_address`
    they are made on the nodes of that Ray cluster, after it has `ray_nodes` of them; `machine` are then those nodes,
    once it is joined. All must have ended by the `deadline`; no run starts after a `pause`
    was asked for. With an `external` executor other programs make them. `retry_failed` makes failed trials run again,
    `tune_again` those that were measured on what was another machine in effect.
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
        """The folder for what a session makes before its runs."""
        return self.runs / "plan"

    @property
    def queue(self) -> BatchQueue | None:
        """The launcher of jobs, if runs are jobs of a batch system."""
        return self.launcher.queue


def storage_patience_s() -> float:
    """Return how long a session waits for a storage that does not answer; 0 not to wait.

    Raises:
        StudyFileError: the variable of the environment is no duration.
    """
    text = os.environ.get(STORAGE_PATIENCE, "15m")
    try:
        return 0.0 if text.strip() == "0" else parse_duration_s(text)
    except ValueError as error:
        msg = f"{STORAGE_PATIENCE} (how long a study waits for its storage; 0: not at all): {error}"
        raise StudyFileError(msg) from error


def default_runs(url: str, name: str) -> Path:
    """Return where the runs of a study are kept unless told otherwise: beside its storage."""
    return state_folder(url) / "autotune-runs" / name
