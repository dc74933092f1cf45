"""Simulated runs: tasks answered from recorded measurements, in simulated time, without starting or waiting.

Time limits, caps and paces apply as in real runs, and the output is read in the same way. Runs that overlap are
reported in the order of their simulated ends. The result of each run is drawn with random numbers that depend only on
the seed, the configuration, the run's purpose and its number, so that interruptions do not change a study.
"""

import heapq
import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from autotune.execution.capping import ProgressWatch, apply_cap
from autotune.execution.executor import Executor
from autotune.execution.task import Task, outcome_of
from autotune.records.outcome import Outcome
from autotune.records.series import RunId, SeriesKind
from autotune.records.study import RECORDED_CAP
from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import Draw, Output, RecordedRun


class SimulatedExecutor(Executor):
    """Answers tasks from recorded measurements, in simulated time.

    Attributes:
        spent_s: The simulated seconds of all runs.
        runs: The number of runs.
    """

    def __init__(self, draw: Draw, seed: int) -> None:
        """Draw each result by calling `draw` for the configuration in a task's command."""
        self.spent_s = 0.0
        self.runs = 0
        self._draw = draw
        self._seed = seed
        self._now_s = 0.0
        self._running: list[tuple[float, int, Task, Outcome]] = []

    def clock(self) -> float:
        """Return the simulated time, in seconds since the start."""
        return self._now_s

    def submit(self, task: Task) -> None:
        """Start a task, and compute its outcome at once."""
        configuration = json.loads(task.job.argv[1])
        worker = next(iter(task.job.resources.hosts), "")
        drawn = self._draw(configuration, np.random.default_rng(_entropy(self._seed, task)), worker)
        outcome = simulate_run(task, drawn)
        self.spent_s += outcome.usage.elapsed_s
        self.runs += 1
        heapq.heappush(self._running, (self._now_s + outcome.usage.elapsed_s, self.runs, task, outcome))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the task that ends next, and advance the simulated time to its end; `timeout_s` has no effect."""
        del timeout_s
        if not self._running:
            return []
        self._now_s, _, task, outcome = heapq.heappop(self._running)
        return [(task, outcome)]

    def cancel_all(self) -> None:
        """Forget what has not ended."""
        self._running.clear()

    def leave(self) -> None:
        """Forget what has not ended."""
        self._running.clear()


def simulate_run(task: Task, run: RecordedRun) -> Outcome:
    """Return the outcome of a recorded run under the time limit and the cap of a task."""
    job = apply_cap(task.job, task.cap)
    now_s = 0.0
    watch = ProgressWatch(task.objective.progress_reader(), task.cap, clock=lambda: now_s)
    ends_s, reason = run.elapsed_s, EndReason.EXITED
    limit_s = job.time_limit_s
    if limit_s is not None and job is not task.job:
        # This limit comes from the cap, which includes the usual set-up time; add this configuration's own.
        limit_s = min(limit_s + run.setup_s, task.job.time_limit_s or inf)
    if limit_s is not None and limit_s < run.elapsed_s:
        ends_s, reason = limit_s, EndReason.TIMED_OUT
    printed = []
    for at_s, line in run.lines:
        if at_s > ends_s:
            break
        now_s = at_s
        printed.append(line)
        if watch(line):
            ends_s, reason = at_s, EndReason.CANCELLED
            break
    exit_code = 0 if reason is EndReason.EXITED else None
    status = JobStatus(JobState.ENDED, reason, exit_code, Usage(ends_s))
    if run.bound is not None and reason is EndReason.EXITED:
        message = f"was stopped after {run.elapsed_s:.3g} s when it was recorded: all that is known is a bound"
        outcome = Outcome(bound=run.bound, code=RECORDED_CAP, message=message)
    else:
        outcome = outcome_of(task, Output("\n".join(printed), "", status, task.job.folder), watch)
    conditions = {"node": run.worker} if run.worker else {}
    return replace(outcome, timeline=watch.timeline, usage=status.usage, attempts=task.attempt, conditions=conditions)


def _entropy(seed: int, task: Task) -> list[int]:
    """Return the seed of a run's random numbers, without the trial's number, which an interruption may change."""
    run = RunId.parse(task.job.name)
    match run.series.kind:
        case SeriesKind.TUNING:
            occasion = str(run.number or "")
        case SeriesKind.WARM_UP:
            occasion = "warm"
        case kind:
            occasion = f"{kind}-{run.round:02d}"
    return [seed, zlib.crc32(task.job.argv[1].encode()), zlib.crc32(occasion.encode()), task.attempt]
