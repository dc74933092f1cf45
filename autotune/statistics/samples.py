"""Samples: the runs of configurations, added one at a time, with the mixed model of them all.

A run changes the value of its own configuration only. The noise depends on all repeated configurations, and is
estimated again when their runs change.
"""

from bisect import insort
from collections.abc import Sequence

from autotune.statistics.mixed_model import MeasuredRun, MixedModel, Spread, Statistic, center, spread_of


class Samples:
    """The runs so far. `effects` returns a view, which later runs change: read it again after each `put`."""

    def __init__(self, statistic: Statistic) -> None:
        """Start without runs; `statistic` makes one value of several."""
        self._statistic = statistic
        self._runs: dict[int, Sequence[MeasuredRun]] = {}
        self._centers: dict[int, float] = {}
        self._repeated: list[int] = []
        self._spread: Spread | None = None

    @property
    def effects(self) -> MixedModel:
        """The effects of configurations and blocks."""
        if self._spread is None:
            self._spread = spread_of([sample for number in self._repeated for sample in self._runs[number]])
        return MixedModel(self._runs, self._centers, self._statistic, self._spread)

    def center(self, configuration: int) -> float:
        """Return the estimate of a configuration's value (a logarithm)."""
        return self._centers[configuration]

    def put(self, configuration: int, runs: Sequence[MeasuredRun]) -> None:
        """Replace the runs of a configuration."""
        before = self._runs.pop(configuration, ())
        self._centers.pop(configuration, None)
        if runs:
            self._runs[configuration] = runs
            self._centers[configuration] = center([sample.value for sample in runs], self._statistic)
        if max(len(before), len(runs)) <= 1 or list(before) == list(runs):
            return
        self._spread = None
        if len(before) > 1:
            self._repeated.remove(configuration)
        if len(runs) > 1:
            insort(self._repeated, configuration)
