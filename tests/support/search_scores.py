"""Score a search on a measured table against random search, whose scores are computed exactly, not sampled.

Random search draws n of N configurations without repeats. It misses the i best with probability C(N - i, n) / C(N, n);
all its scores follow from that.

The usual score is the performance over time of Willemsen et al., "A methodology for comparing optimization algorithms
for auto-tuning" (2024; PyPI autotuning-methodology): the relative position of a search between random search's expected
best and the optimum, averaged over equidistant times; 0 is random search, 1 is the optimum at once. Here random search
is exact and includes failures; theirs takes the value at the expected rank among successful runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# As in the paper: the time at which random search is expected to be 95 % of the way from the median to the optimum.
_CUTOFF = 0.95
_TIMES = 1_000


@dataclass(frozen=True)
class RandomSearch:
    """Random search over N values: `missed` (B + 1, N + 1), `missed[n, i]` = P(n draws miss the i best).

    `ordered` (N,) are the values, the best first; a failure has the worst value.
    """

    ordered: Floats
    missed: Floats

    @classmethod
    def over(cls, values: Floats, budget: int) -> "RandomSearch":
        """Return random search over `values` (N,), NaN for a failure, for up to `budget` draws."""
        ordered = np.sort(np.where(np.isnan(values), np.nanmax(values), values))
        size = len(ordered)
        missed = np.ones((budget + 1, size + 1))
        left = size - np.arange(size + 1)
        for n in range(1, budget + 1):
            # Probability that the n-th draw misses, too: (N - i - n + 1) of the (N - n + 1) remaining values.
            remaining = size - n + 1
            chance = np.maximum(left - n + 1, 0) / remaining if remaining > 0 else np.zeros(size + 1)
            missed[n] = missed[n - 1] * chance
        missed[1:, 0] = 1.0
        return cls(ordered, missed)

    def expected_best(self) -> Floats:
        """Return the expected best value after 1 to B draws, (B,)."""
        first = self.missed[1:, :-1] - self.missed[1:, 1:]
        expected: Floats = first @ self.ordered
        return expected

    def deviation(self) -> Floats:
        """Return the standard deviation of the best value after 1 to B draws, (B,)."""
        first = self.missed[1:, :-1] - self.missed[1:, 1:]
        return np.sqrt(np.maximum(first @ self.ordered**2 - self.expected_best() ** 2, 0.0))

    def quantile(self, share: float) -> Floats:
        """Return the values that 1 to B draws reach with probability `share`, (B,)."""
        reached = (1.0 - self.missed[1:, 1:]) >= share - 1e-12
        quantiles: Floats = self.ordered[reached.argmax(axis=1)]
        return quantiles

    def evaluations_to(self, within: float) -> tuple[float, float]:
        """Return the mean of min(T, B + 1), where draw T is the first `within` of the optimum, and P(T <= B)."""
        good = int((self.ordered <= self.ordered[0] * (1.0 + within)).sum())
        return float(self.missed[:, good].sum()), float(1.0 - self.missed[-1, good])


def evaluations_to(best: Sequence[float] | Floats, optimum: float, within: float, budget: int) -> int:
    """Return the first evaluation `within` (relatively) of the optimum, or `budget` + 1."""
    reached = np.flatnonzero(np.asarray(best)[:budget] <= optimum * (1.0 + within))
    return int(reached[0]) + 1 if len(reached) else budget + 1


@dataclass(frozen=True)
class Baseline:
    """Random search over time: its expected best after 1, 2, ... evaluations of `cost_s` seconds, to `horizon_s`."""

    expected: Floats
    optimum: float
    cost_s: float
    horizon_s: float

    @classmethod
    def of(cls, values: Floats, costs_s: Floats, budget: int) -> "Baseline":
        """Return the baseline for `budget` evaluations, or to the paper's cut-off if that comes first.

        `values` (N,) has NaN for failures. `costs_s` (N,) is the time of each evaluation, including failures.
        """
        budget = min(budget, len(values))
        worked = ~np.isnan(values)
        cutoff_s = _cutoff_evaluations(values[worked]) * float(np.median(costs_s[worked]))
        cost_s = float(costs_s.mean())
        horizon_s = min(cutoff_s, budget * cost_s)
        expected = RandomSearch.over(values, budget).expected_best()
        return cls(expected, float(np.nanmin(values)), cost_s, max(horizon_s, cost_s))

    def at(self, times_s: Floats) -> Floats:
        """Return the expected best at times, (t,); before the end of the first evaluation, its value."""
        # Only finished evaluations count, as in a search: interpolation would be half an evaluation ahead.
        done = np.floor(times_s / self.cost_s + 1e-9).astype(int)
        best: Floats = self.expected[np.clip(done, 1, len(self.expected)) - 1]
        return best

    def score(self, best: Floats, costs_s: Sequence[float]) -> float:
        """Return the performance over time of a search with `best` values so far (n,) that took `costs_s` (n,).

        A finished search keeps its best value. Before the end of its first evaluation it has the value of that one.
        """
        times_s = np.linspace(min(self.cost_s, self.horizon_s), self.horizon_s, _TIMES)
        random = self.at(times_s)
        done = np.searchsorted(np.cumsum(costs_s), times_s, side="right") - 1
        found = best[np.clip(done, 0, len(best) - 1)]
        apart = random - self.optimum
        open_ = apart > 1e-12 * abs(self.optimum)
        return float(((random - found)[open_] / apart[open_]).mean()) if open_.any() else 0.0


def _cutoff_evaluations(worked: Floats) -> int:
    """Return the paper's cut-off for values (N,): the expected rank of the best of n draws is n (N + 1) / (n + 1)."""
    falling = np.sort(worked)[::-1]
    target = falling[-1] + (float(np.median(falling)) - falling[-1]) * (1.0 - _CUTOFF)
    place = int(np.flatnonzero(falling <= target)[0])
    if falling[place] == falling[-1] and place > 0:
        place -= 1
    return max(ceil(place / (len(falling) + 1 - place)), 1)
