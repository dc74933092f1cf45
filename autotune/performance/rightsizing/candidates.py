"""Candidates: the configurations that a run may use, with their cores and expected times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.performance.regression.prediction import Estimate
from autotune.performance.regression.table import Places
from spaces import Configuration
from spaces.expressions.quantities import FloatArray

# The half-width, as a logarithm, of an interval that is useless to a user: its ends are a factor of 100 apart.
_VAGUE = np.log(100.0) / 2.0


@dataclass(frozen=True)
class Candidates:
    """The n configurations that a run may use.

    Attributes:
        configurations: The configurations.
        nodes: Their nodes, (n,).
        cores: Their cores, (n,).
        traits: (n, d); configurations with near traits should take similar times.
        doublings: How often the cores of a rank double from the usual division of as many nodes and cores, (n,): the
            division nearest to the default's.
        expected: Logarithms of times, (n,), with half-widths of intervals, by a model; None without a model.
        off: (k, n), directions in which the model may err for all candidates together, in standard deviations; None
            if the model does not state them.
    """

    configurations: tuple[Configuration, ...]
    nodes: FloatArray
    cores: FloatArray
    traits: FloatArray
    doublings: FloatArray
    expected: Estimate | None = None
    off: FloatArray | None = None

    @classmethod
    def of(
        cls,
        configurations: Sequence[Configuration],
        nodes: Sequence[int],
        cores: Sequence[int],
        expected: Estimate | None = None,
        threads: Sequence[int] = (),
    ) -> "Candidates":
        """Return the candidates, the default first, given their nodes, cores and `threads`, the cores of each rank.

        Without `threads`, all divide their cores into ranks alike.
        """
        names = dict.fromkeys(name for configuration in configurations for name in configuration)
        columns = [_column([configuration.get(name) for configuration in configurations]) for name in names]
        node_counts, core_counts = np.array(nodes, dtype=float), np.array(cores, dtype=float)
        traits = np.column_stack([np.log(node_counts), np.log(core_counts), *columns])
        varied = np.ptp(traits, axis=0) > 0.0
        doublings = _doublings(node_counts, core_counts, np.array(threads or np.ones(len(nodes)), dtype=float))
        return cls(tuple(configurations), node_counts, core_counts, traits[:, varied], doublings, expected)

    def __len__(self) -> int:
        return len(self.configurations)

    @property
    def has_useful_times(self) -> bool:
        """Whether the expected times are useful: the ends of their intervals are within a factor of 100."""
        return self.expected is not None and bool(np.median(self.expected.half) < _VAGUE)

    def usual(self, cost: FloatArray) -> Places:
        """Return the index, (n,), of the cheapest candidate of as many nodes and cores with the usual division.

        Where all of these failed, a candidate has its own index.
        """
        sizes = list(zip(self.nodes.tolist(), self.cores.tolist(), strict=True))
        places = sorted(np.flatnonzero(self.doublings == 0.0).tolist(), key=lambda place: -cost[place])
        usual = {sizes[place]: place for place in places}
        return np.array([usual.get(size, place) for place, size in enumerate(sizes)], dtype=np.intp)

    def at(self, places: Sequence[int]) -> "Candidates":
        """Return the candidates at `places`, (m,)."""
        kept = np.array(places, dtype=np.intp)
        expected = self.expected and Estimate(self.expected.mean[kept], self.expected.half[kept], self.expected.share)
        return replace(
            self,
            configurations=tuple(self.configurations[place] for place in places),
            nodes=self.nodes[kept],
            cores=self.cores[kept],
            traits=self.traits[kept],
            doublings=self.doublings[kept],
            expected=expected,
            off=None if self.off is None else self.off[:, kept],
        )


def _doublings(nodes: FloatArray, cores: FloatArray, threads: FloatArray) -> FloatArray:
    """Return how often the threads of a rank double from the usual division of as many nodes and cores, (n,)."""
    sizes = list(zip(nodes.tolist(), cores.tolist(), strict=True))
    apart = np.log2(threads / threads[:1])
    usual = {sizes[place]: apart[place] for place in np.argsort(-np.abs(apart), kind="stable")}
    return np.asarray(apart - np.array([usual[size] for size in sizes]))


def _column(values: Sequence[object]) -> FloatArray:
    """Return the columns of a parameter, (n, k): logarithms of numbers, with 1 for unset, or a column for each word."""
    numbers = [1.0 if value is None else value for value in values]
    if all(isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in numbers):
        logs: FloatArray = np.log(np.array(numbers, dtype=float))[:, None]
        return logs
    words = [str(value) for value in values]
    return np.column_stack([np.array([word == one for word in words], dtype=float) for one in sorted(set(words))])
