"""Leaders: of a sweep over two parameters, which value of the second is best at each value of the first.

The two best are compared in the rounds where both have run, not over what each is against the base.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean
from typing import Any

from autotune.comparison.blocks import BlockTable
from autotune.statistics import signed_rank
from autotune.statistics.ratio_words import Interval, ends, times
from autotune.statistics.verdict import ratio_interval
from objectives.base import Metric


@dataclass(frozen=True)
class Leader:
    """The best of several configurations at `place`, and how many times better than the second best it is.

    Without a `second` it is the only one that has a value there.
    """

    place: str
    best: str
    second: str | None
    ratio: Interval | None

    @property
    def is_clear(self) -> bool:
        """Whether it is better beyond the noise."""
        return self.ratio is not None and self.ratio[1] > 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {**vars(self), "ratio": self.ratio and list(self.ratio), "is_clear": self.is_clear}

    def sentence(self, metric: Metric) -> str:
        """Say it, as in `at np=4: software=own is best, 1.500 times as fast as software=site (1.412 to 1.603)`."""
        if self.second is None or self.ratio is None:
            return f"at {self.place}: only {self.best} has a value"
        interval = f"({ends(self.ratio, metric)})"
        ratio = f"{times(self.ratio[0], metric, '.3f')} {self.second} {interval}"
        if self.is_clear:
            return f"at {self.place}: {self.best} is best, {ratio}"
        return f"at {self.place}: {self.best} and {self.second} cannot be told apart; {self.best} is {ratio}"


def leaders(
    table: BlockTable, groups: Mapping[str, Sequence[tuple[str, int]]], metric: Metric, confidence: float
) -> tuple[Leader, ...]:
    """Return the leader of each group: its place, and the labels and sides that compete there.

    Where too few rounds have both of the best two for an interval there is none.
    """
    found = []
    for place, competitors in groups.items():
        sides = [(label, side) for label, side in competitors if table.values(side)]
        ranked = sorted(sides, key=lambda one: fmean(map(log, table.values(one[1]).values())))
        if metric.direction == "maximize":
            ranked.reverse()
        if len(ranked) == 1:
            found.append(Leader(place, ranked[0][0], None, None))
        elif ranked:
            (best, first), (second, other) = ranked[:2]
            pairs = table.pairs(other, first)
            if len(pairs) >= signed_rank.least_pairs(confidence):
                found.append(Leader(place, best, second, ratio_interval(pairs, metric, confidence)))
    return tuple(found)
