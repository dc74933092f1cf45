"""How the ratio of a comparison differs between nodes: pairs of runs, each pair on one node.

The pairs of a node share what that node makes of the ratio; the spread between nodes is estimated as the random effect
of a one-way analysis of variance, by moments (Searle, Casella & McCulloch, Variance Components, 1992, section 3.6).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, expm1, log, sqrt
from statistics import fmean
from typing import Self

from objectives.base import Metric


@dataclass(frozen=True)
class NodeSpread:
    """The ratio on each node, and its relative standard deviation between them.

    If every node has only one pair, the spread includes the noise of single pairs (`with_noise`).
    """

    ratios: dict[str, float]
    spread: float
    with_noise: bool

    @classmethod
    def of(cls, pairs: Sequence[tuple[float, float]], nodes: Sequence[str], metric: Metric) -> Self | None:
        """Return the spread of pairs (default, winner), each on one of `nodes`; None if they were all on one."""
        by_node: dict[str, list[float]] = defaultdict(list)
        for (default, winner), node in zip(pairs, nodes, strict=False):
            by_node[node].append(metric.cost(log(default / winner)))
        if len(by_node) < 2:
            return None
        means = {node: fmean(values) for node, values in sorted(by_node.items())}
        ratios = {node: exp(mean) for node, mean in means.items()}
        spread, with_noise = _between(list(by_node.values()))
        return cls(ratios, expm1(spread), with_noise)

    @property
    def losing(self) -> list[str]:
        """The nodes on which the default was better."""
        return [node for node, ratio in self.ratios.items() if ratio < 1.0]

    def words(self) -> str:
        """Return the spread in words: `over 4 nodes, the ratio varies by 3%`."""
        over = f"over {len(self.ratios)} nodes"
        if self.spread == 0.0:
            return f"{over}, which differ no more than the noise"
        return f"{over}, the ratio varies by {self.spread:.1%}{', noise included' if self.with_noise else ''}"


def _between(groups: Sequence[Sequence[float]]) -> tuple[float, bool]:
    """Return the standard deviation between groups, and whether it includes that within groups."""
    count, sizes = sum(map(len, groups)), [len(group) for group in groups]
    everything = [value for group in groups for value in group]
    if count == len(groups):
        center = fmean(everything)
        return sqrt(sum((value - center) ** 2 for value in everything) / (count - 1)), True
    center, means = fmean(everything), [fmean(group) for group in groups]
    between = sum(size * (mean - center) ** 2 for size, mean in zip(sizes, means, strict=True)) / (len(groups) - 1)
    squares = sum((value - mean) ** 2 for group, mean in zip(groups, means, strict=True) for value in group)
    size = (count - sum(size**2 for size in sizes) / count) / (len(groups) - 1)
    return sqrt(max(0.0, (between - squares / (count - len(groups))) / size)), False
