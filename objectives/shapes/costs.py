"""Costs: what a program's run time is a sum of, in the seconds that are expected before any measurement.

A term is an amount of work over a rate: the amounts follow from the configuration and the size of the problem, the
rates of a build on a machine are few numbers, of which something is known in advance.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Costs:
    """The cost of n cases.

    Args:
        seconds: Each term by name, (n,), not negative; NaN where a fact that it needs is not known.
        doubts: The standard deviation of the logarithm of each term's rate from one build or machine to another.
        level: The standard deviation of the logarithm of all terms together: how little is known of the amount of
            work. With a great one only the order of configurations is predicted, not their times.
        timers: The terms that each of the program's own timers measures, by the timer's name.
        timed: In which cases the timers measure what the run waits for, (n,): they are one rank's, which another may
            keep waiting. None: in all.
        reads: The parameters that the terms depend on.
        sized: Whether the terms say how much more work a larger problem is: only the rest of a workload's level is then
            its own, however vague that of all is.
        inverse: Whether the sum is the inverse of what is measured: the seconds that a unit of work takes, where work
            a second is measured.
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
        """Return the cases at `places`, (m,)."""
        timed = None if self.timed is None else self.timed[places]
        return replace(self, seconds={name: column[places] for name, column in self.seconds.items()}, timed=timed)

    def join(self, other: "Costs") -> "Costs":
        """Return the cases of both, which have the same terms."""
        seconds = {name: np.concatenate([self.seconds[name], other.seconds[name]]) for name in self.names}
        parts = [costs.timed for costs in (self, other) if costs.timed is not None]
        return replace(self, seconds=seconds, timed=np.concatenate(parts) if len(parts) == 2 else None)
