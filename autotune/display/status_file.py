"""The status file: the state of a session, for monitors to read while it runs."""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Any

from autotune.display.console import Display, Running, Status
from autotune.files import replace_file
from autotune.machines.boot import boot_id
from launchers.process_tree import start_time

STARTING, WAITING, ENDED = "starting", "waiting", "ended"
"""The phases of a session before it has its cores and storage, while it waits for them, and after its end."""

_EVERY_S = 1.0


@dataclass(frozen=True)
class _Snapshot:
    """The content of the file.

    Attributes:
        advanced: How often a run or trial has finished, or a phase has begun, since the session began.
    """

    phase: str = STARTING
    message: str = ""
    running: tuple[dict[str, Any], ...] = ()
    left_s: float | None = None
    left_most_s: float | None = None
    finished: int | None = None
    budget: int | None = None
    open_ended: bool = False
    more: int = 0
    advanced: int = 0


def _this_process() -> dict[str, Any]:
    """Return what identifies this process, even among later processes with the same number."""
    return {"pid": os.getpid(), "started": start_time(os.getpid()), "boot": boot_id()}


@dataclass
class StatusDisplay:
    """A display that also writes the state of the session to a file, at most once a second or for a new phase.

    The file is a JSON object, and is never half-written. A failure to write it is ignored.

    Attributes:
        inner: The display that shows the study.
        path: The file.
        clock: The clock that limits how often the file is written.
    """

    inner: Display
    path: Path
    clock: Callable[[], float] = time.monotonic
    _now: _Snapshot = field(default_factory=_Snapshot, init=False)
    _write_at: float = field(default=0.0, init=False)
    _seen: bool = field(default=False, init=False)
    _process: dict[str, Any] = field(default_factory=_this_process, init=False)

    def __post_init__(self) -> None:
        self._write(self._now)

    def line(self, text: str) -> None:
        """Show an event, which also ends a wait."""
        if self._now.phase == WAITING:
            self._write(replace(self._now, phase=STARTING, message=""))
        self.inner.line(text)

    def detail(self, text: str) -> None:
        """Show the end of a run; no run ends during a wait."""
        self.inner.detail(text)

    def waits(self, text: str) -> None:
        """Show that this session waits."""
        self._write(replace(self._now, phase=WAITING, message=text))
        self.inner.waits(text)

    def update(self, status: Status) -> None:
        """Show the state of the study."""
        before = self._now
        further = self._seen and (status.phase != before.phase or status.finished > (before.finished or 0))
        self._now = _Snapshot(
            phase=status.phase,
            left_s=_finite(status.left_s),
            left_most_s=_finite(status.left_most_s),
            finished=status.finished,
            budget=status.budget,
            open_ended=status.open_ended,
            more=status.more,
            advanced=before.advanced + further,
        )
        self._seen = True
        if status.phase != before.phase or self.clock() >= self._write_at:
            self._write(replace(self._now, running=tuple(running_row(run) for run in status.running)))
        self.inner.update(status)

    def close(self) -> None:
        """Stop showing the study, and record that the session has ended."""
        if self._now.phase != ENDED:
            self._write(replace(self._now, phase=ENDED, message="", running=(), left_s=None, left_most_s=None, more=0))
        self.inner.close()

    def _write(self, now: _Snapshot) -> None:
        self._now = now
        self._write_at = self.clock() + _EVERY_S
        by = {"pid": os.getpid(), "process": self._process, "written": time.time()}
        text = json.dumps({**vars(now), **by}, default=str)
        with suppress(OSError):  # a full disk, a removed folder: the study continues
            replace_file(self.path, text, durable=False)


def running_row(run: Running) -> dict[str, Any]:
    """Return a run in flight in the form that the service reports."""
    progress = run.progress
    return {
        "trial": run.number,
        "label": run.label,
        "configuration": dict(run.configuration),
        "elapsed_s": round(run.elapsed_s, 3),
        "step": progress.step if progress else None,
        "waits": run.waits,
        "metrics": {name: _finite(value) for name, value in progress.metrics.items()} if progress else {},
    }


def _finite(value: float | None) -> float | None:
    """Return a finite number unchanged, and None for others, which JSON cannot represent."""
    return value if value is not None and isfinite(value) else None
