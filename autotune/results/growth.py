"""Growth: how a front came about, as its hypervolume over the trials and the core-seconds that they took.

Each metric counts from 0, its best value on the front as it is now, to 1, its worst there. The reference point is 1.1
in each, so that the ends of the front count, too (Ishibuchi et al., Evolutionary Computation 26, 2018).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from autotune.records.study import TrialRecord
from autotune.results.pareto import ParetoFront, points_of
from autotune.statistics.hypervolume import Hypervolume
from autotune.statistics.standings import Standings

REFERENCE = 1.1
"""The reference point in each metric, scaled from 0 to 1 over the front."""

_MOST_OF_IT = 0.9


@dataclass(frozen=True)
class FrontGrowth:
    """The growth of a front, trial by trial.

    Attributes:
        trials: The numbers of the trials, in order.
        core_s: The core-seconds spent up to each trial.
        shares: The share of the final hypervolume after each trial.
    """

    trials: tuple[int, ...]
    core_s: tuple[float, ...]
    shares: tuple[float, ...]

    @classmethod
    def of(cls, front: ParetoFront, standings: Standings) -> "FrontGrowth":
        """Return the growth of a front with at least one point, from the trials that keep the limits."""
        costs = [front.costs(point) for point in front.points]
        best = tuple(map(min, zip(*costs, strict=True)))
        # A metric that is constant over the front is scaled by its own value.
        spans = [max(column) - min(column) or abs(min(column)) or 1.0 for column in zip(*costs, strict=True)]
        volume, spent, rows = Hypervolume((REFERENCE,) * len(best)), 0.0, []
        for trial in _in_order(standings):
            spent += trial.core_s
            for point in points_of([trial] if standings.limits.keeps(trial.number) else [], front.metrics):
                places = zip(front.costs(point), best, spans, strict=True)
                volume.add(tuple((cost - least) / span for cost, least, span in places))
            rows.append((trial.number, spent, volume.value))
        trials, core_s, volumes = zip(*rows, strict=True)
        return cls(trials, core_s, tuple(one / volume.value for one in volumes))

    def sentence(self) -> str:
        """Return after how many trials most of the front was found, which shows what the rest of the budget gained."""
        place = next(index for index, share in enumerate(self.shares) if share >= _MOST_OF_IT)
        text = f"{_MOST_OF_IT:.0%} of its hypervolume was there after {place + 1} of {len(self.trials)} trials"
        if self.core_s[-1] > 0.0:
            text += f", {self.core_s[place]:.3g} of {self.core_s[-1]:.3g} core-seconds of tuning"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        rows = zip(self.trials, self.core_s, self.shares, strict=True)
        return {
            "reference": REFERENCE,
            "growth": [{"trial": trial, "core_s": core_s, "share": share} for trial, core_s, share in rows],
        }


def _in_order(standings: Standings) -> Iterable[TrialRecord]:
    return sorted((trial for trial in standings.trials.values() if trial.runs), key=lambda trial: trial.number)
