"""Segments: runs of a program that works in steps, from a trial's checkpoint to the next rung."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path

from autotune.records.outcome import Outcome
from autotune.records.study import ENDED, STOPPED
from objectives.base import CURVE, LAST_STEP, REMARK, Metric, Progress, ProgressReader

ELAPSED = "elapsed_s"
"""The metric that adds up over the segments of a trial."""

Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class Segment:
    """The part of a training that one run makes.

    Attributes:
        steps: The step to stop at, counted from the start of the training.
        of: The last step that a trial may reach.
        metric: The metric of the training.
        floors: Values of the metric by step: a run whose best value is worse at that step is stopped.
        checkpoint: The folder of the checkpoint to continue from; None to start from the beginning.
        best: The best value before this segment.
    """

    steps: int
    of: int
    metric: Metric
    floors: Mapping[int, float] = field(default_factory=dict)
    checkpoint: Path | None = None
    best: float | None = None


class SegmentWatch:
    """Follows the progress of a segment, and stops a run that passed its last step or fell behind."""

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
        """Whether the run should be stopped."""
        return self.overrun or self.behind is not None

    def __call__(self, progress: Progress) -> bool:
        """Handle a step; return True to stop the run."""
        # Several lines may report one step, the metric not in the first. So a step is judged when its metric or the
        # next step is reported.
        if self._step is not None and progress.step != self._step:
            self._judge(self._step)
        self._step = progress.step
        value = progress.metrics.get(self._segment.metric.name)
        if value is not None:
            known = [value] if self._best is None else [self._best, value]
            self._best = min(known, key=self._segment.metric.cost)
            self._judge(progress.step)
        # A program that stops by itself at its last step never reports a later one.
        self.overrun = progress.step > self._segment.steps
        return self.stops

    def _judge(self, step: int) -> None:
        floor = self._floors.pop(step, None)
        cost = self._segment.metric.cost
        if floor is not None and self._best is not None and cost(self._best) > cost(floor):
            self.behind = step


def curve_of(outcome: Outcome) -> Curve:
    """Return the stored curve of a run."""
    return tuple((int(step), float(value)) for step, value in outcome.details.get(CURVE, ()))


def best_until(curve: Curve, steps: int, metric: Metric) -> float | None:
    """Return the best value of a curve up to a step; None for a curve without values there."""
    return min((value for step, value in curve if step <= steps), key=metric.cost, default=None)


def best_so_far(curve: Curve, metric: Metric) -> Curve:
    """Return a curve with the best value up to each step."""
    best = accumulate((value for _, value in curve), lambda *pair: min(pair, key=metric.cost))
    return tuple((step, value) for (step, _), value in zip(curve, best, strict=True))


def read_lost_curve(path: Path, read: ProgressReader, metric: Metric) -> Curve:
    """Return the curve from the output of a run that was killed with its session.

    Its checkpoint may be newer than these steps; the next run starts there and does not report them again.
    """
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    seen = (progress for progress in map(read, lines) if progress is not None)
    return tuple((report.step, report.metrics[metric.name]) for report in seen if metric.name in report.metrics)


def join_segments(before: Outcome | None, outcome: Outcome, segment: Segment, lost: Curve = ()) -> Outcome:
    """Return the outcome of a segment with the results of the earlier ones: the whole curve and its best value.

    Steps beyond the segment's last one do not count. `lost` is the curve of a killed run of the same segment.
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
        # The other metrics and the remark belong to the step with the best value.
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
