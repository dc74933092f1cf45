"""Checkpoint folders: where each trial resumes its training, and the curves of segments that were killed.

A checkpoint folder holds only the program's own files, since many programs refuse to start in a folder that is not
empty. Our note lies beside it: the segment that was started last, and the curves of its runs that were killed. Each
study has folders of its own, also if another study has the same name.
"""

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.execution.segments import Curve, read_lost_curve
from launchers import STDERR, STDOUT
from objectives.base import Metric, Objective

_STREAMS = (STDOUT, STDERR)  # a training's progress lines are in one of them


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of one study, beside the folders of its `runs`; `mark` distinguishes it from others."""

    runs: Path
    mark: str

    def folder(self, trial: int) -> Path:
        """Return the folder of a trial, as a job finds it from its own folder."""
        return self.runs.absolute() / "checkpoints" / self.mark / f"{trial:05d}"

    def sweep(self, trials: Iterable[int]) -> None:
        """Remove checkpoints that a killed session left of trials that will not be trained further."""
        if self.folder(0).parent.is_dir():
            for trial in trials:
                self.forget(trial)

    def forget(self, trial: int) -> None:
        """Remove the checkpoints of a trial that will not be trained further."""
        shutil.rmtree(self.folder(trial), ignore_errors=True)
        with suppress(OSError):
            self._note(trial).unlink()

    def note_start(self, trial: int, run_name: str, objective: Objective, metric: Metric) -> Curve:
        """Note the start of a segment in the folder `run_name`; return the curve of its runs that were killed.

        Call it before that folder is emptied: the curve of the last killed run is read from its output there.
        """
        known = self._last_noted_curve(trial, run_name)
        lost: Curve = ()
        if known is not None:
            streams = (
                read_lost_curve(self.runs / run_name / name, objective.progress_reader(), metric) for name in _STREAMS
            )
            lost = (*known, *next(filter(None, streams), ()))
        # A missing note costs the curve of a killed run, not the training.
        with suppress(OSError):
            self.folder(trial).mkdir(parents=True, exist_ok=True)
            self._note(trial).write_text(json.dumps({"leg": run_name, "curve": lost}), encoding="utf-8")
        return lost

    def curve_of_killed_runs(self, trial: int, run_name: str) -> Curve:
        """Return the curve of a segment's earlier runs, which were killed."""
        return self._last_noted_curve(trial, run_name) or ()

    def _note(self, trial: int) -> Path:
        folder = self.folder(trial)
        return folder.with_name(f"{folder.name}.json")

    def _last_noted_curve(self, trial: int, run_name: str) -> Curve | None:
        """Return the curve noted at the start of a segment; None if this segment was not the last to start."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(self._note(trial).read_text(encoding="utf-8"))
            if note["leg"] == run_name:
                return tuple((int(step), float(value)) for step, value in note["curve"])
        return None
