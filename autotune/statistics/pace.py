"""Pace: where a run goes that tells its steps, with a run to its end as the yardstick.

A run's start is one thing and its pace another: what has passed counts as it is, and what is left goes on at the pace
of the later half of the steps seen, so that a slow start, or a program that tunes itself at first, does not pass for a
slow pace for longer than twice the steps it takes.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

Timeline = tuple[tuple[int, float], ...]
"""(step, seconds since the start) of what a run told, steps ascending."""

_LEAST = 3
"""Of fewer steps told no pace is known."""

# A time metric that is shorter than the run by that share is of a part of it.
_LEFT_OUT = 0.02


@dataclass(frozen=True)
class Pace:
    """A run to its end, as a yardstick: (step, elapsed_s) of its progress, and its value of the target metric.

    `sure` tells from which step on, ascending, by what factor a forecast has to be beyond a bound for the run to be
    surely beyond it.
    """

    timeline: Timeline
    elapsed_s: float
    value: float
    sure: tuple[tuple[int, float], ...] = ()

    def end_s(self, seen: Sequence[tuple[int, float]]) -> float | None:
        """Return when a run ends that has told `seen`, at least three steps; None where the yardstick lacks these."""
        if len(seen) < _LEAST or len(self.timeline) < _LEAST:
            return None
        last, elapsed_s = seen[-1]
        middle = max((self.began(seen) + last) / 2.0, self.timeline[0][0])
        then_s, before_s, now_s = time_at(seen, middle), time_at(self.timeline, middle), time_at(self.timeline, last)
        if then_s is None or before_s is None or now_s is None or now_s <= before_s:
            return None
        # Lines are read some moments after they came, of a quick run when it is over.
        left_s = max(0.0, self.elapsed_s - now_s)
        return elapsed_s + left_s * (elapsed_s - then_s) / (now_s - before_s)

    def began(self, seen: Sequence[tuple[int, float]]) -> int:
        """Return the first step that both told, if both told it."""
        return max(seen[0][0], self.timeline[0][0])

    def value_at(self, end_s: float, seen: Sequence[tuple[int, float]], *, is_rate: bool) -> float | None:
        """Return the value of the target metric of a run that has told `seen` and ends then; a rate needs a start.

        A time that leaves out a part of a run may leave out any of its start: a longer one does not make it worse.
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
        """Return the factor that holds at a step: the newest of `sure`, before these the `usual` one."""
        place = bisect_left(self.sure, step + 1, key=lambda one: one[0])
        return self.sure[place - 1][1] if place else usual


def time_at(timeline: Sequence[tuple[int, float]], step: float) -> float | None:
    """Return when a step was reached, between its neighbours in proportion; None outside of the timeline."""
    index = bisect_left(timeline, (step, -1.0))
    if index == len(timeline) or (index == 0 and timeline[0][0] != step):
        return None
    after = timeline[index]
    if after[0] == step:
        return after[1]
    before = timeline[index - 1]
    return before[1] + (after[1] - before[1]) * (step - before[0]) / (after[0] - before[0])
