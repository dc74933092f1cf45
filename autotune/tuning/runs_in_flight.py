"""The runs of tuning that wait for cores, and those that are in flight."""

import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.display.console import Running
from autotune.execution.task import Task
from launchers import LineReader
from objectives.base import Objective, Progress, ProgressReader, no_progress

MOST_SHOWN = 20
"""The panel shows at most this number of runs in flight, oldest first, so that it stays readable."""


@dataclass
class _Followed:
    """A run in flight whose output is read for its progress."""

    run: RunInFlight
    lines: LineReader
    read: ProgressReader
    since: float = field(default_factory=time.monotonic)
    progress: Progress | None = None

    def read_state(self, why_waits: Callable[[str], str]) -> Running:
        """Read the program's new output and return the state of the run."""
        with suppress(OSError):
            for line in self.lines.new_lines() if self.read is not no_progress else ():
                self.progress = self.read(line) or self.progress
        elapsed_s = time.monotonic() - self.since
        waits = why_waits(self.run.task.job.name)
        return Running(self.run.task.key, self.run.purpose.configuration, elapsed_s, self.progress, waits=waits)


class RunsInFlight:
    """Runs by name. The key of their tasks is the number of their trial.

    Attributes:
        busy: How many runs each trial has; without trials that have none.
    """

    def __init__(self) -> None:
        """Start with no runs."""
        self.busy: Counter[int] = Counter()
        self._in_flight: dict[str, _Followed] = {}
        self._waiting: deque[PlannedRun] = deque()

    def __len__(self) -> int:
        """Return how many runs are in flight."""
        return len(self._in_flight)

    @property
    def names(self) -> set[str]:
        """The names of the runs, also of those that wait."""
        return {*self._in_flight, *(planned.name for planned in self._waiting)}

    def first_waiting(self, count: int) -> list[PlannedRun]:
        """Return the runs to start next, at most `count`."""
        return list(islice(self._waiting, count))

    def wait(self, planned: PlannedRun, *, first: bool = False) -> None:
        """Queue a run for cores, behind the others or `first`."""
        self.busy[planned.task.key] += 1
        if first:
            self._waiting.appendleft(planned)
        else:
            self._waiting.append(planned)

    def start(self, run: RunInFlight, objective: Objective) -> None:
        """Move the first queued run to the runs in flight."""
        self._waiting.popleft()
        lines = LineReader(run.task.job.folder / run.task.job.progress_file)
        self._in_flight[run.name] = _Followed(run, lines, objective.progress_reader())

    def of(self, task: Task) -> RunInFlight:
        """Return the run of a task."""
        return self._in_flight[task.job.name].run

    def end(self, run: RunInFlight) -> None:
        """Remove a run that ended."""
        del self._in_flight[run.name]
        self.busy[run.task.key] -= 1
        self.busy += Counter()  # leaves out what is zero

    def read_state(self, why_waits: Callable[[str], str]) -> tuple[Running, ...]:
        """Return the state of the runs that the panel shows; `why_waits` maps a run's name to why it has not begun."""
        return tuple(followed.read_state(why_waits) for followed in list(islice(self._in_flight.values(), MOST_SHOWN)))
