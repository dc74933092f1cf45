"""Pace: forecast the end of a run that reports its steps, by comparison with a complete run.

The time so far counts as it is; the remaining steps are forecast at the pace of the later half of the steps seen. So a
slow start, or a program that first tunes itself, is mistaken for a slow pace for at most twice the steps it lasts.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

Timeline = tuple[tuple[int, float], ...]
"""(step, seconds since the start) of each report of a run, steps ascending."""

_LEAST = 3
"""Reports that a pace needs at least."""

# A time metric that is shorter than the run by this share covers only a part of it.
_LEFT_OUT = 0.02


@dataclass(frozen=True)
class Pace:
    """A complete run, against which others are judged: (step, elapsed_s) of its progress, and its metric's value.

    `sure` has pairs of a step, ascending, and the factor by which a forecast made from that step on must exceed a bound
    for the run to exceed it for certain.
    """

    timeline: Timeline
    elapsed_s: float
    value: float
    sure: tuple[tuple[int, float], ...] = ()

    def end_s(self, seen: Sequence[tuple[int, float]]) -> float | None:
        """Return when a run will end that has reported `seen`; None if the complete run did not report these steps.

        Args:
            seen: At least three reports.
        """
        if len(seen) < _LEAST or len(self.timeline) < _LEAST:
            return None
        last, elapsed_s = seen[-1]
        middle = max((self.began(seen) + last) / 2.0, self.timeline[0][0])
        then_s, before_s, now_s = time_at(seen, middle), time_at(self.timeline, middle), time_at(self.timeline, last)
        if then_s is None or before_s is None or now_s is None or now_s <= before_s:
            return None
        # Lines are read some moments after they were printed; those of a quick run, when it is over.
        left_s = max(0.0, self.elapsed_s - now_s)
        return elapsed_s + left_s * (elapsed_s - then_s) / (now_s - before_s)

    def began(self, seen: Sequence[tuple[int, float]]) -> int:
        """Return the first step that both runs reported."""
        return max(seen[0][0], self.timeline[0][0])

    def value_at(self, end_s: float, seen: Sequence[tuple[int, float]], *, is_rate: bool) -> float | None:
        """Return the metric's value of a run that has reported `seen` and ends at `end_s`; a rate needs a start.

        A time metric that covers only a part of the run may leave out its start, so a longer start does not worsen it.
        """
        began_s, ours_s = time_at(self.timeline, self.began(seen)), time_at(seen, self.began(seen))
        if not is_rate:
            is_part = self.elapsed_s - self.value > _LEFT_OUT * self.elapsed_s
            longer_s = max(0.0, ours_s - began_s) if is_part and began_s is not None and ours_s is not None else 0.0
            return self.value + end_s - self.elapsed_s - longer_s
        if began_s is None or ours_s is None or end_s <= ours_s:
            return None
        return self.value * (self.elapsed_s - began_s) / (end_s - ours_s)

    def factor(self, step: int, usual: float) -> float:
        """Return the factor at a step: the last of `sure` up to it, or the `usual` one before these."""
        place = bisect_left(self.sure, step + 1, key=lambda one: one[0])
        return self.sure[place - 1][1] if place else usual


def time_at(timeline: Sequence[tuple[int, float]], step: float) -> float | None:
    """Return when a step was reached, interpolated linearly; None outside the timeline."""
    index = bisect_left(timeline, (step, -1.0))
    if index == len(timeline) or (index == 0 and timeline[0][0] != step):
        return None
    after = timeline[index]
    if after[0] == step:
        return after[1]
    before = timeline[index - 1]
    return before[1] + (after[1] - before[1]) * (step - before[0]) / (after[0] - before[0])
