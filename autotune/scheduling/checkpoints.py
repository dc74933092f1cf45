"""Checkpoint folders: where each trial resumes its training, and the curves of segments that were killed.

A checkpoint folder holds only the program's own files, since many programs refuse to start in a folder that is not
empty. Our note lies beside it: the segment that was started last, the curves of its runs that were killed, and the file
that has the program's progress lines. Each study has folders of its own, also if another study has the same name.
"""

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from autotune.execution.segments import Curve, read_lost_curve
from launchers import STDOUT
from objectives.base import Metric, Objective


@dataclass(frozen=True)
class _Note:
    leg: str
    curve: Curve = ()
    progress_file: str = STDOUT


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
        note = self._read_note(trial) or _Note("")
        if note.leg == run_name:
            output = self.runs / run_name / note.progress_file
            lost = (*note.curve, *read_lost_curve(output, objective.progress_reader(), metric))
        else:
            lost = ()
        self._write_note(trial, replace(note, leg=run_name, curve=lost))
        return lost

    def note_progress_file(self, trial: int, name: str) -> None:
        """Note which file the job of a trial writes its progress lines to."""
        note = self._read_note(trial)
        if note is not None:
            self._write_note(trial, replace(note, progress_file=name))

    def curve_of_killed_runs(self, trial: int, run_name: str) -> Curve:
        """Return the curve of a segment's earlier runs, which were killed."""
        note = self._read_note(trial)
        return note.curve if note is not None and note.leg == run_name else ()

    def _note(self, trial: int) -> Path:
        folder = self.folder(trial)
        return folder.with_name(f"{folder.name}.json")

    def _write_note(self, trial: int, note: _Note) -> None:
        # A missing note costs the curve of a killed run, not the training.
        with suppress(OSError):
            self.folder(trial).mkdir(parents=True, exist_ok=True)
            self._note(trial).write_text(json.dumps(asdict(note)), encoding="utf-8")

    def _read_note(self, trial: int) -> _Note | None:
        with suppress(OSError, ValueError, KeyError, TypeError):
            note = json.loads(self._note(trial).read_text(encoding="utf-8"))
            curve = tuple((int(step), float(value)) for step, value in note["curve"])
            return _Note(str(note["leg"]), curve, str(note["progress_file"]))
        return None
