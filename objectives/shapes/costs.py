"""Costs: the terms of a program's run time, in the seconds that are expected before any measurement.

A term is an amount of work divided by a rate. The amounts follow from the configuration and the size of the problem;
the rates of a build on a machine are a few numbers with known typical values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """The costs of n cases.

    Args:
        seconds: Each term by name, (n,), not negative; NaN where a fact that it needs is unknown.
        doubts: The standard deviation of the logarithm of each term's rate between builds and machines.
        level: The standard deviation of the logarithm of the whole sum, since the amount of work is uncertain. If it is
            large, only the order of configurations is predicted, not their times.
        timers: The terms that each of the program's own timers measures, by the timer's name.
        timed: The cases whose timers measure what the run waits for, (n,); None: all. Timers are those of one rank,
            which another rank may keep waiting.
        reads: The parameters that the terms depend on.
        sized: Whether the terms say how much more work a larger problem is. Then a workload's own level is only the
            rest, however uncertain `level` is.
        inverse: Whether the measured metric is the inverse of the sum: the terms are seconds per unit of work, and work
            per second is measured.
    """

    seconds: Mapping[str, Column]
    doubts: Mapping[str, float]
    level: float
    timers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    timed: npt.NDArray[np.bool_] | None = None
    reads: frozenset[str] = frozenset()
    sized: bool = False
    inverse: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.seconds.values()), ()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the p terms."""
        return tuple(self.doubts)

    @property
    def logarithms(self) -> Column:
        """The logarithms of the terms, (n, p); a term of 0 is -inf."""
        with np.errstate(divide="ignore"):
            logarithms: Column = np.log(np.column_stack([self.seconds[name] for name in self.names]))
        return logarithms

    def at(self, places: npt.NDArray[np.intp]) -> "Costs":
        """Return the cases at the indices `places`, (m,)."""
        timed = None if self.timed is None else self.timed[places]
        return replace(self, seconds={name: column[places] for name, column in self.seconds.items()}, timed=timed)
