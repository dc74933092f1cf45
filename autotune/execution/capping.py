"""Capping: a run that has already lost is stopped, and what is known of it is a bound.

Two signs are used. A metric that is a time in seconds cannot be better than what has passed already, so its cap is a
time limit of the job, which holds whatever dies meanwhile. And where the program tells its steps, the pace of the run
against that of a run to its end (of the incumbent) says early that it will be too slow.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, log

from autotune.statistics.pace import Pace, Timeline, time_at
from launchers import EndReason, Job, JobStatus
from launchers.status import read_status
from objectives.base import Metric, Progress, ProgressReader

# A pace is judged when the reference had done that share of its run since its first step, in two steps at least, and
# for so long: output is read some ten times a second.
_JUDGED_AFTER = 0.1
_JUDGED_AFTER_S = 1.0
# The forecast must be that much beyond the cap, unless more is known: the pace of a run changes on its way.
USUAL = 1.25
_TIMELINE_POINTS = 200
# Stopping a shorter run saves nothing, and starting and ending a job are no longer negligible.
SHORTEST_S = 0.5


@dataclass(frozen=True)
class OptimisticInput:
    """One input of a mix while it has not ended: its `metric` counts as `hoped`, which is better than the best seen.

    `share` is what it counts. When it has run for `lost_after_s`, the run has lost even with such values of the others.
    """

    metric: str
    share: float
    hoped: float
    lost_after_s: float | None = None


@dataclass(frozen=True)
class Cap:
    """From where on a run has lost: `bound` is the value of the target metric, `elapsed_s` the time of the job.

    `inputs` are those of a mix, in their order.
    """

    metric: Metric
    bound: float
    elapsed_s: float | None = None
    pace: Pace | None = None
    inputs: tuple[OptimisticInput, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """Where a run goes at its pace: its value of the target metric, and the time of its job."""

    value: float
    elapsed_s: float


def make_cap(metric: Metric, bound: float, *, overhead_s: float = 0.0, pace: Pace | None = None) -> Cap | None:
    """Return the cap for a bound; None for a metric that says nothing before the end, and for very short runs.

    `overhead_s` is what jobs usually take beside the time that the metric measures. This one gets as much once more: a
    configuration may have a start of its own.
    """
    if not metric.can_be_forecast or (bound < SHORTEST_S and metric.is_seconds):
        return None
    if metric.is_seconds:
        return Cap(metric, bound, bound + 2.0 * max(0.0, overhead_s), pace)
    return Cap(metric, bound, pace=pace) if pace else None


def judged_after_s(whole_s: float) -> float:
    """Return how long after its first step a run of a program can be judged that takes so long as a whole."""
    return max(_JUDGED_AFTER * whole_s, _JUDGED_AFTER_S)


def apply_cap(job: Job, limit: Cap | None) -> Job:
    """Return the job with the cap as its time limit, if that is the lower one; in a mix that of each input."""
    if limit is not None and limit.inputs:
        own = zip(job.parts, limit.inputs, strict=True)
        return replace(job, parts=tuple(replace(part, lost_after_s=one.lost_after_s) for part, one in own))
    if limit is None or limit.elapsed_s is None or _own_limit_is_lower(job, limit.elapsed_s):
        return job
    return replace(job, time_limit_s=limit.elapsed_s)


def _own_limit_is_lower(job: Job, elapsed_s: float) -> bool:
    return job.time_limit_s is not None and job.time_limit_s <= elapsed_s


class ProgressWatch:
    """Follows the live output of one run: keeps its timeline, and says when its pace has lost."""

    def __init__(
        self,
        read: ProgressReader,
        limit: Cap | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_progress: Callable[[Progress], bool] | None = None,
    ) -> None:
        """Start the clock. `on_progress` may stop the run for reasons of its own."""
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
    def timeline(self) -> Timeline:
        """What was seen, thinned to a few hundred points."""
        stride = 1 + len(self._timeline) // _TIMELINE_POINTS
        points = self._timeline[::stride]
        if self._timeline and points[-1] != self._timeline[-1]:
            points.append(self._timeline[-1])
        return tuple(points)

    def __call__(self, line: str) -> bool:
        """Read a line; True when the run should be stopped. `forecast` is what its pace promises."""
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
        """Read lines that came together; True when the run should be stopped, at the line that says so."""
        return any(map(self, lines))

    def _of_mix(self, limit: Cap, progress: Progress) -> Forecast | None:
        """Return the mix of the inputs that have ended, and of what is hoped for the others; None after the last."""
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
    # Of a mix, hope leaves room enough.
    certain = 1.0 if limit.inputs or limit.pace is None else limit.pace.factor(step, USUAL)
    if limit.metric.direction == "maximize":
        return forecast * certain < limit.bound
    return forecast > limit.bound * certain


def was_capped(job: Job, limit: Cap | None, status: JobStatus, watch: ProgressWatch) -> bool:
    """Whether a run was stopped by its cap, not by its own time limit or its own end."""
    if watch.stops and status.reason is EndReason.CANCELLED:
        return True
    if limit is not None and limit.inputs:
        return any(_has_lost(part) for part in apply_cap(job, limit).parts)
    if limit is None or limit.elapsed_s is None or _own_limit_is_lower(job, limit.elapsed_s):
        return False
    # The wall time of a site may be over before: then less is known than the cap says.
    return status.reason is EndReason.TIMED_OUT and status.usage.elapsed_s >= limit.elapsed_s


def _has_lost(part: Job) -> bool:
    """Whether a part was stopped since its run had lost, not by a time limit of its own."""
    status = read_status(part.folder)
    if part.lost_after_s is None or status is None or status.reason is not EndReason.TIMED_OUT:
        return False
    return status.usage.elapsed_s >= part.lost_after_s
