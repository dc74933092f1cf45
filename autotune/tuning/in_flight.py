"""Flights: the runs that were launched and have not ended, and those that wait for cores."""

import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from autotune.coordination.run_manager import Launched
from autotune.display.console import Running
from autotune.execution.segments import Curve
from autotune.execution.task import Task
from autotune.records.study import Purpose
from autotune.scheduling.repeats import Step
from launchers import STDOUT, LineReader
from objectives.base import Objective, Progress, ProgressReader

SHOWN = 20
"""So many runs in flight are followed and shown, those that were launched first: nobody reads a thousand lines."""


@dataclass(frozen=True)
class Ready:
    """A run that waits for cores; `lost` is the curve of its runs that were killed."""

    step: Step
    task: Task
    purpose: Purpose
    lost: Curve = ()

    @property
    def known(self) -> int | None:
        """How many runs of its trial were known when it was decided on; None for a run of a comparison."""
        trial = self.step.trial
        return len(trial.runs) + len(trial.earlier) if self.purpose.series.is_tuning else None


@dataclass
class Flight:
    """A run in flight."""

    step: Step
    launched: Launched
    lines: LineReader
    read: ProgressReader
    lost: Curve = ()
    since: float = field(default_factory=time.monotonic)
    progress: Progress | None = None

    @property
    def number(self) -> int:
        """The number of its trial."""
        return self.step.trial.number

    def follow(self) -> None:
        """Read what the program has said since the last time."""
        with suppress(OSError):
            for line in self.lines.new_lines():
                self.progress = self.read(line) or self.progress


class Flights:
    """Runs by the numbers of their trials, of which each has one at most."""

    def __init__(self) -> None:
        """Start without any."""
        self.busy: set[int] = set()
        self._flying: dict[int, Flight] = {}
        self._waiting: deque[Ready] = deque()

    def __len__(self) -> int:
        """How many runs are in flight."""
        return len(self._flying)

    @property
    def first_waiting(self) -> Ready | None:
        """The run that is to be launched first."""
        return self._waiting[0] if self._waiting else None

    def wait(self, ready: Ready, *, first: bool = False) -> None:
        """Let a run wait for cores, behind the others or as the `first` of them."""
        self.busy.add(ready.step.trial.number)
        if first:
            self._waiting.appendleft(ready)
        else:
            self._waiting.append(ready)

    def drop_first(self) -> None:
        """Forget the first of the waiting runs: somebody else makes it."""
        self.busy.discard(self._waiting.popleft().step.trial.number)

    def launch(self, launched: Launched, objective: Objective) -> None:
        """Take note that the first of the waiting runs was launched."""
        ready = self._waiting.popleft()
        lines = LineReader(launched.task.job.folder / STDOUT)
        self._flying[ready.step.trial.number] = Flight(
            ready.step, launched, lines, objective.progress_reader(), ready.lost
        )

    def of(self, task: Task) -> Flight:
        """Return the flight of a task."""
        return self._flying[task.key]

    def land(self, flight: Flight) -> None:
        """Take note that a run ended."""
        del self._flying[flight.number]
        self.busy.discard(flight.number)

    def shown(self) -> tuple[Running, ...]:
        """Return those that are shown, as they are now."""
        shown = list(islice(self._flying.values(), SHOWN))
        for flight in shown:
            flight.follow()
        return tuple(
            Running(flight.number, flight.step.trial.configuration, time.monotonic() - flight.since, flight.progress)
            for flight in shown
        )
