"""Hypervolume: how much of a box the points of a front dominate, exactly.

By exclusive contributions (WFG: While, Bradstreet & Barone, IEEE TEVC 16, 2012): what a point adds is its own box
without what the others dominate of it. Optuna's own is not public.
"""

from collections.abc import Iterable, Sequence
from math import prod
from operator import le

Costs = tuple[float, ...]


class Hypervolume:
    """The volume that the points so far dominate within a reference point; lower costs are better."""

    def __init__(self, reference: Costs) -> None:
        """Start without points."""
        self.value = 0.0
        self._reference = reference
        self._front: list[Costs] = []

    def add(self, point: Costs) -> None:
        """Count a point; one that is beyond the reference point in any metric adds nothing."""
        if all(cost < end for cost, end in zip(point, self._reference, strict=True)):
            self.value += _volume_gain(point, self._front, self._reference)
            self._front = _non_dominated([*self._front, point])


def _volume_gain(point: Costs, others: Iterable[Costs], reference: Costs) -> float:
    """Return the volume that a point dominates and none of `others` does."""
    own = prod(end - cost for cost, end in zip(point, reference, strict=True))
    return own - _volume(_non_dominated(tuple(map(max, point, other)) for other in others), reference)


def _volume(front: Sequence[Costs], reference: Costs) -> float:
    """Return the volume that mutually non-dominated points dominate; they must be in sorted order."""
    if len(reference) == 2:
        # Sorted by the first metric, the points are steps that descend in the second.
        ends = [*(point[0] for point in front), reference[0]][1:]
        return sum((end - x) * (reference[1] - y) for end, (x, y) in zip(ends, front, strict=True))
    # The worst in the last metric first: within its box the others differ in the other metrics only.
    ordered = sorted(front, key=lambda point: -point[-1])
    flat = [point[:-1] for point in ordered]
    return sum(
        (reference[-1] - point[-1]) * _volume_gain(flat[index], flat[index + 1 :], reference[:-1])
        for index, point in enumerate(ordered)
    )


def _non_dominated(points: Iterable[Costs]) -> list[Costs]:
    """Return the points that no other is as good as in all metrics, each once, sorted."""
    front: list[Costs] = []
    for point in sorted(points):
        # Of two metrics the last one so far is the best in the second.
        rivals = front[-1:] if len(point) == 2 else front
        if not any(all(map(le, other, point)) for other in rivals):
            front.append(point)
    return front
