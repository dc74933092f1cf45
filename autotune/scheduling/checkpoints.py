"""Checkpoints: the folders from which trials go on, and what is known of a segment that was killed.

A folder holds what the program keeps there, and nothing else: many refuse to begin in a folder that is not empty. A
note of our own is beside it: which segment was started last, and the curve of those that were killed before. Other
studies of the same name have other folders.
"""

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.execution.segments import Curve, salvaged
from launchers import STDOUT
from objectives.base import Metric, Objective


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one study, beside the folders of its `runs`; `mark` tells it from others.

    Coordinators that share a study have runs of their own, and checkpoints in the folder `around` these: a trial that
    one of them has left goes on with another.
    """

    runs: Path
    mark: str
    around: Path | None = None

    def folder(self, trial: int) -> Path:
        """Return the folder of a trial, as a job finds it from its own folder."""
        return (self.around or self.runs).absolute() / "checkpoints" / self.mark / f"{trial:05d}"

    def sweep(self, trials: Iterable[int]) -> None:
        """Remove the checkpoints of trials that will not go on, if they were left by a session that was killed."""
        if self.folder(0).parent.is_dir():
            for trial in trials:
                self.forget(trial)

    def forget(self, trial: int) -> None:
        """Remove the checkpoints of a trial that will not go on."""
        shutil.rmtree(self.folder(trial), ignore_errors=True)
        with suppress(OSError):
            self._note(trial).unlink()

    def started(self, trial: int, run_name: str, objective: Objective, metric: Metric) -> Curve:
        """Take note that a segment is started in the folder `run_name`; return the curve of its runs that were killed.

        To be called before that folder is emptied.
        """
        known = self._noted(trial, run_name)
        lost: Curve = ()
        if known is not None:
            lost = (*known, *salvaged(self.runs / run_name / STDOUT, objective.progress_reader(), metric))
        # Without the note a killed run's curve is lost, and nothing else.
        with suppress(OSError):
            self.folder(trial).mkdir(parents=True, exist_ok=True)
            self._note(trial).write_text(json.dumps({"leg": run_name, "curve": lost}), encoding="utf-8")
        return lost

    def lost(self, trial: int, run_name: str) -> Curve:
        """Return the curve of the runs of a segment that were killed before the one that is in that folder now."""
        return self._noted(trial, run_name) or ()

    def _note(self, trial: int) -> Path:
        folder = self.folder(trial)
        return folder.with_name(f"{folder.name}.json")

    def _noted(self, trial: int, run_name: str) -> Curve | None:
        """Return what was noted at the start of a segment; None if another was started last, or none."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(self._note(trial).read_text(encoding="utf-8"))
            if note["leg"] == run_name:
                return tuple((int(step), float(value)) for step, value in note["curve"])
        return None
