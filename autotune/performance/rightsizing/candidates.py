"""Candidates: what a run may be given, with the cores that it takes, and what is expected of its time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.run_times.estimate import Estimate
from spaces import Configuration

# Half an interval, as a logarithm, that says nothing that a user did not know: its ends are a factor of 100 apart.
_VAGUE = np.log(100.0) / 2.0


@dataclass(frozen=True)
class Candidates:
    """The n configurations that a run may have: their `nodes` and `cores`, (n,), and `traits`, (n, d).

    Traits are near each other where the times should be alike. `expected` are logarithms of times, (n,), with half
    their intervals, by a model; None where none knows the program. `off`, (k, n), is how the model may be off,
    each row by so many standard deviations for all candidates together; None where it does not say.
    """

    configurations: tuple[Configuration, ...]
    nodes: FloatArray
    cores: FloatArray
    traits: FloatArray
    expected: Estimate | None = None
    off: FloatArray | None = None

    @classmethod
    def of(
        cls,
        configurations: Sequence[Configuration],
        nodes: Sequence[int],
        cores: Sequence[int],
        expected: Estimate | None = None,
    ) -> "Candidates":
        """Return the candidates of configurations that take so many nodes and cores."""
        names = dict.fromkeys(name for configuration in configurations for name in configuration)
        columns = [_column([configuration.get(name) for configuration in configurations]) for name in names]
        node_counts, core_counts = np.array(nodes, dtype=float), np.array(cores, dtype=float)
        traits = np.column_stack([np.log(node_counts), np.log(core_counts), *columns])
        varied = np.ptp(traits, axis=0) > 0.0
        return cls(tuple(configurations), node_counts, core_counts, traits[:, varied], expected)

    def __len__(self) -> int:
        return len(self.configurations)

    @property
    def has_useful_times(self) -> bool:
        """Whether what is expected says something: the ends of its intervals are within a factor of 100."""
        return self.expected is not None and bool(np.median(self.expected.half) < _VAGUE)

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
            expected=expected,
            off=None if self.off is None else self.off[:, kept],
        )


def _column(values: Sequence[object]) -> FloatArray:
    """Return a column, (n, k): the logarithms of numbers, where unset counts as 1; words as equal or not."""
    numbers = [1.0 if value is None else value for value in values]
    if all(isinstance(value, int | float) and not isinstance(value, bool) and value > 0 for value in numbers):
        logs: FloatArray = np.log(np.array(numbers, dtype=float))[:, None]
        return logs
    words = [str(value) for value in values]
    return np.column_stack([np.array([word == one for word in words], dtype=float) for one in sorted(set(words))])
