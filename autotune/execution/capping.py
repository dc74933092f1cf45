"""Capping: stop a run that has already lost, and store a bound.

There are two criteria. A time in seconds cannot be better than the time already spent, so its cap is a time limit of
the job, which works even if autotune is killed. If the program prints its steps, the pace of the run, compared with
that of a complete run of the incumbent, shows early that it will be too slow.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log

from autotune.statistics.pace import Pace, Timeline, time_at
from launchers import EndReason, Job, JobStatus
from launchers.status import read_status
from objectives.base import Metric, Progress, ProgressReader, no_progress

# A pace is judged once the reference had made this share of its run after its first step, in at least two steps, and
# had run for this many seconds, since output is read about ten times a second.
_JUDGED_AFTER = 0.1
_JUDGED_AFTER_S = 1.0
# The forecast must exceed the cap by this factor, unless the pace is known better, since paces change during a run.
USUAL = 1.25
_TIMELINE_POINTS = 200
# Stopping shorter runs saves nothing, because starting and ending the job takes a similar time.
SHORTEST_S = 0.5


@dataclass(frozen=True)
class OptimisticInput:
    """An optimistic value for one input of a mix, until the input has ended.

    Attributes:
        metric: The name of its metric.
        share: Its share of the mix.
        hoped: The optimistic value, better than the best seen.
        lost_after_s: After this many seconds of the input, the run has lost even with optimistic values of the others.
    """

    metric: str
    share: float
    hoped: float
    lost_after_s: float | None = None


@dataclass(frozen=True)
class Cap:
    """The point at which a run has lost.

    Attributes:
        metric: The target metric.
        bound: Its value at that point.
        elapsed_s: The duration of the job at that point, in seconds.
        pace: The reference for the pace of the run.
        inputs: The inputs of a mix, in their order.
    """

    metric: Metric
    bound: float
    elapsed_s: float | None = None
    pace: Pace | None = None
    inputs: tuple[OptimisticInput, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """The target metric's value and the job's duration if the run keeps its pace."""

    value: float
    elapsed_s: float


def make_cap(metric: Metric, bound: float, *, overhead_s: float = 0.0, pace: Pace | None = None) -> Cap | None:
    """Return the cap for a bound; None for very short runs, and for metrics that are unknown before the end.

    Args:
        metric: The target metric.
        bound: The value at which the run has lost.
        overhead_s: The usual time of jobs outside the measured time, in seconds. The cap allows twice as much, because
            a configuration may start more slowly.
        pace: The reference for the pace of the run.
    """
    if not metric.can_be_forecast or (bound < SHORTEST_S and metric.is_seconds):
        return None
    if metric.is_seconds:
        return Cap(metric, bound, bound + 2.0 * max(0.0, overhead_s), pace)
    return Cap(metric, bound, pace=pace) if pace else None


def judged_after_s(whole_s: float) -> float:
    """Return how long after its first step a run can be judged, for a program that takes `whole_s` seconds."""
    return max(_JUDGED_AFTER * whole_s, _JUDGED_AFTER_S)


def apply_cap(job: Job, limit: Cap | None) -> Job:
    """Return the job with the cap as its time limit, if that is lower; for a mix, with a limit for each input."""
    if limit is not None and limit.inputs:
        own = zip(job.parts, limit.inputs, strict=True)
        return replace(job, parts=tuple(replace(part, lost_after_s=one.lost_after_s) for part, one in own))
    if limit is None or limit.elapsed_s is None or _own_limit_is_lower(job, limit.elapsed_s):
        return job
    return replace(job, time_limit_s=limit.elapsed_s)


def _own_limit_is_lower(job: Job, elapsed_s: float) -> bool:
    return job.time_limit_s is not None and job.time_limit_s <= elapsed_s


class ProgressWatch:
    """Follows the live output of a run: keeps its timeline, and decides when its pace has lost."""

    def __init__(
        self,
        read: ProgressReader,
        limit: Cap | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_progress: Callable[[Progress], bool] | None = None,
    ) -> None:
        """Start the clock. `on_progress` may also stop the run."""
        self._read = read
        self._cap = limit
        self._clock = clock
        self._on_progress = on_progress
        self._started = clock()
        self._timeline: list[tuple[int, float]] = []
        self._values: dict[str, float] = {}
        self.forecast: Forecast | None = None
        self.inputs_done = 0
        self.stops = False

    @property
    def follows(self) -> bool:
        """Whether it needs the output: the reader of a program without progress finds nothing."""
        return self._read is not no_progress

    @property
    def timeline(self) -> Timeline:
        """The steps seen so far, thinned to a few hundred points."""
        stride = 1 + len(self._timeline) // _TIMELINE_POINTS
        points = self._timeline[::stride]
        if self._timeline and points[-1] != self._timeline[-1]:
            points.append(self._timeline[-1])
        return tuple(points)

    def __call__(self, line: str) -> bool:
        """Read a line, and update `forecast`; return True to stop the run."""
        progress = self._read(line)
        if progress is not None and self._on_progress is not None and self._on_progress(progress):
            return True
        if progress is None or (self._timeline and progress.step <= self._timeline[-1][0]):
            return False
        self._timeline.append((progress.step, self._clock() - self._started))
        if self._cap is not None:
            self.forecast = self._of_mix(self._cap, progress) if self._cap.inputs else self._forecast()
            self.stops = self.forecast is not None and _is_beyond(self._cap, self.forecast.value, progress.step)
        return self.stops

    def read(self, lines: Sequence[str]) -> bool:
        """Read several lines, up to the one that stops the run; return True to stop it."""
        return any(map(self, lines))

    def _of_mix(self, limit: Cap, progress: Progress) -> Forecast | None:
        """Return the mix of the ended inputs' values and the others' optimistic values; None after the last input."""
        self._values |= progress.metrics
        self.inputs_done = progress.step
        if progress.step >= len(limit.inputs):
            return None
        values = ((one.share, self._values.get(one.metric, one.hoped)) for one in limit.inputs)
        return Forecast(exp(fsum(share * log(value) for share, value in values)), self._clock() - self._started)

    def _forecast(self) -> Forecast | None:
        pace = self._cap.pace if self._cap else None
        if self._cap is None or pace is None or not pace.timeline:
            return None
        before_s = time_at(pace.timeline, pace.began(self._timeline))
        now_s = time_at(pace.timeline, self._timeline[-1][0])
        if before_s is None or now_s is None:
            return None
        if now_s - before_s < judged_after_s(pace.elapsed_s):
            return None
        end_s = pace.end_s(self._timeline)
        value = None if end_s is None else pace.value_at(end_s, self._timeline, is_rate=self._cap.metric.kind == "rate")
        return None if end_s is None or value is None else Forecast(value, end_s)


def _is_beyond(limit: Cap, forecast: float, step: int) -> bool:
    # The optimistic values of a mix need no further margin.
    certain = 1.0 if limit.inputs or limit.pace is None else limit.pace.factor(step, USUAL)
    if limit.metric.direction == "maximize":
        return forecast * certain < limit.bound
    return forecast > limit.bound * certain


def was_capped(job: Job, limit: Cap | None, status: JobStatus, watch: ProgressWatch) -> bool:
    """Whether a run was stopped by its cap, rather than by its own time limit or its end."""
    if watch.stops and status.reason is EndReason.CANCELLED:
        return True
    if limit is not None and limit.inputs:
        return any(_has_lost(part) for part in apply_cap(job, limit).parts)
    if limit is None or limit.elapsed_s is None or _own_limit_is_lower(job, limit.elapsed_s):
        return False
    # The site's wall time may end the job before its cap; then the bound is not proven.
    return status.reason is EndReason.TIMED_OUT and status.usage.elapsed_s >= limit.elapsed_s


def _has_lost(part: Job) -> bool:
    """Whether a part was stopped because its run had lost, rather than by its own time limit."""
    status = read_status(part.folder)
    if part.lost_after_s is None or status is None or status.reason is not EndReason.TIMED_OUT:
        return False
    return status.usage.elapsed_s >= part.lost_after_s
