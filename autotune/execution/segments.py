"""Segments: a run of a program that works in steps, from where the trial was left to where it is judged next."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from autotune.records.outcome import Outcome
from autotune.records.study import ENDED, STOPPED
from objectives.base import CURVE, LAST_STEP, REMARK, Metric, Progress, ProgressReader

ELAPSED = "elapsed_s"
"""The metric that adds up over the segments of a trial."""

Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Segment:
    """How far a run goes: until `steps` steps are made in all, `of` the most that a trial may make.

    `floors` are values of the metric by step: a run whose best so far is worse at one of these steps is stopped.
    `checkpoint` is the folder that the trial goes on from; None for a run that begins anew. `best` is the best value
    before this segment.
    """

    steps: int
    of: int
    metric: Metric
    floors: Mapping[int, float] = field(default_factory=dict)
    checkpoint: Path | None = None
    best: float | None = None


class SegmentWatch:
    """Follows the progress of a segment; True when the run should be stopped: it went too far, or fell behind."""

    def __init__(self, segment: Segment) -> None:
        """Start before the first step."""
        self._segment = segment
        self._floors = dict(segment.floors)
        self._best = segment.best
        self._step: int | None = None
        self.overrun = False
        self.behind: int | None = None

    @property
    def stops(self) -> bool:
        """Whether the run was told to stop."""
        return self.overrun or self.behind is not None

    def __call__(self, progress: Progress) -> bool:
        """Take note of a step."""
        # A step may be told by several lines, of which not the first has the metric: it is judged when that is told, or
        # when the next step is.
        if self._step is not None and progress.step != self._step:
            self._judge(self._step)
        self._step = progress.step
        value = progress.metrics.get(self._segment.metric.name)
        if value is not None:
            known = [value] if self._best is None else [self._best, value]
            self._best = min(known, key=self._segment.metric.cost)
            self._judge(progress.step)
        # A program that stops at its step by itself never reports the next one.
        self.overrun = progress.step > self._segment.steps
        return self.stops

    def _judge(self, step: int) -> None:
        floor = self._floors.pop(step, None)
        cost = self._segment.metric.cost
        if floor is not None and self._best is not None and cost(self._best) > cost(floor):
            self.behind = step


def curve_of(outcome: Outcome) -> Curve:
    """Return the curve that a run left."""
    return tuple((int(step), float(value)) for step, value in outcome.details.get(CURVE, ()))


def best_until(curve: Curve, steps: int, metric: Metric) -> float | None:
    """Return the best value of a curve up to a step; None if there is none yet."""
    return min((value for step, value in curve if step <= steps), key=metric.cost, default=None)


def read_lost_curve(path: Path, read: ProgressReader, metric: Metric) -> Curve:
    """Return the curve in the output of a run that was killed with the session: its checkpoint is beyond it already."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    seen = (progress for progress in map(read, lines) if progress is not None)
    return tuple((report.step, report.metrics[metric.name]) for report in seen if metric.name in report.metrics)


def join_segments(before: Outcome | None, outcome: Outcome, segment: Segment, lost: Curve = ()) -> Outcome:
    """Return the outcome of a segment with what those before it showed: the whole curve, and the best value on it.

    What a program did beyond the step that it was asked for does not count. `lost` is the curve of a run of the same
    segment that was killed.
    """
    if not outcome.complete:
        return outcome
    earlier = (*(curve_of(before) if before else ()), *lost)
    known = {step: value for step, value in earlier if step <= segment.steps}
    known |= {step: value for step, value in curve_of(outcome) if step <= segment.steps}
    curve = tuple(sorted(known.items()))
    best = best_until(curve, segment.steps, segment.metric)
    last = int(outcome.details.get(LAST_STEP, curve[-1][0] if curve else 0))
    details = {**outcome.details, CURVE: [list(point) for point in curve]}
    if STOPPED not in details and 0 < last < segment.steps:
        details[ENDED] = last
    metrics = dict(outcome.metrics)
    if before is not None and before.complete:
        # What is recorded beside the metric belongs to the step at which that was best.
        if before.metrics[segment.metric.name] == best:
            metrics |= before.metrics
            details = {name: value for name, value in details.items() if name != REMARK}
            details |= {name: value for name, value in before.details.items() if name == REMARK}
        metrics |= {
            name: before.metrics[name] + outcome.metrics[name]
            for name in (ELAPSED,)
            if name in before.metrics and name in outcome.metrics
        }
    if best is not None:
        metrics[segment.metric.name] = best
    return replace(outcome, metrics=metrics, details=details)
