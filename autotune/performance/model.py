"""The performance model: from everything that was measured of a program to the best configurations of a setting.

Where the same space was measured on other machines, those tell how near to the best a configuration comes
(`transfer`); run times, and configurations of other spaces, are predicted from facts (`runtimes`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import Interval, Prediction, Proposal
from autotune.performance.run_times.model import RunTimes
from autotune.performance.transfer.model import Transfer, transfer
from autotune.performance.transfer.sources import Source, sources
from autotune.records.measurement import Measured, Setting
from objectives.base import Metric
from spaces import Space
from spaces.valid_set.valid_set import Indices

# All of a valid set up to this size is looked at; of a larger one a sample, and what was measured of it.
_LISTED = 200_000
_SAMPLED = 20_000
# With fewer settings of the same space their efficiencies are no better guide than run times.
_TRANSFERRED = 3
_REASONS = 5


@dataclass(frozen=True)
class PerformanceModel:
    """What is known of a program; `rules` are those of the space, for the numbers that they compute."""

    measured: tuple[Measured, ...]
    rules: tuple[str, ...] = ()

    def best(self, space: Space, setting: Setting, top: int) -> Prediction:
        """Return the `top` configurations that should be best in a setting; none where nothing can be said.

        Where too little was measured by the setting's metric, another of the same unit has to do, and no gain is
        promised.
        """
        told = self._best(space, setting, top)
        for other in self._instead_of(setting.metric) if not told.proposals else ():
            found = self._best(space, replace(setting, metric=other), top)
            if found.proposals:
                doubt = f"little was measured by {setting.metric.name}: judged by {other.name}"
                return replace(found, promising=False, doubts=(doubt, *found.doubts))
        return told

    def _instead_of(self, metric: Metric) -> list[Metric]:
        """Return the metrics of the same unit and direction, the most often measured first."""
        counts = Counter(one.setting.metric for one in self.measured if one.value is not None)
        alike = (metric.unit, metric.direction)
        return [one for one, _ in counts.most_common() if one != metric and (one.unit, one.direction) == alike]

    def _left_out(self, metric: Metric) -> list[str]:
        """Say what was measured by a metric of the same name, but on another scale."""
        others = Counter(one.setting.metric for one in self.measured if one.setting.metric.name == metric.name)
        return [
            f"left out: {count} measurements of {other.name} in {other.unit or 'no unit'}, to {other.direction}"
            for other, count in others.items()
            if not other.compares_with(metric)
        ]

    def _best(self, space: Space, setting: Setting, top: int) -> Prediction:
        found = sources(space, setting, self.measured)
        rows = _candidates(space, found)
        times = RunTimes.fitted(self.measured, self.rules, setting)
        known = tuple(dict.fromkeys(one.setting.place for one in found))
        grounds: tuple[str, ...] = ()
        if found:
            machines = "1 machine" if len(known) == 1 else f"{len(known)} machines"
            grounds = (f"the same space was measured on {machines}: {', '.join(known)}",)
        grounds += (times.grounds,) if times is not None else ()
        doubts = (*(times.doubts if times is not None else ()), *self._left_out(setting.metric))
        view = _View(space, setting, rows, times if times is not None and not times.abstains else None)
        if len(found) >= _TRANSFERRED or (found and view.times is None):
            told = replace(view, rows=rows[view.differs_in(_varied(space, found))])
            return told.transferred(transfer(space, setting, found, told.rows, top), grounds, doubts)
        if view.times is None:
            why = "too little was measured of it by this metric to say anything"
            return Prediction(setting, space.default(), None, (), doubts=doubts or (why,), grounds=grounds)
        return view.timed(view.times, top, grounds, doubts)


@dataclass(frozen=True)
class Fields:
    """What each of m sources says of configurations, for a search."""

    found: tuple[Source, ...]

    def fields(self, rows: Indices) -> FloatArray:
        """Return how much worse than its best each source has value indexes (n, p), by logarithm: (n, m), >= 0."""
        return np.column_stack([-one.at(rows) for one in self.found])


@dataclass(frozen=True)
class _View:
    """The candidates of a setting, the default first, and what is known of their times."""

    space: Space
    setting: Setting
    rows: Indices
    times: RunTimes | None

    def transferred(self, found: Transfer, grounds: tuple[str, ...], doubts: tuple[str, ...]) -> Prediction:
        """Return the prediction that follows from what other machines say of the same space."""
        if not found.proposals:
            doubts += ("nothing is expected to be better than the default",)
        places = np.array(found.proposals, dtype=np.intp)
        proposals = tuple(
            Proposal(configuration, value, found.speed_up(place))
            for configuration, value, place in zip(
                self.space.decode(self.rows[places]), self._values(places), found.proposals, strict=True
            )
        )
        promising = bool(found.proposals) and len(found.gains) > 1 and bool((found.gains > 0.0).all())
        if len(found.gains) > 1:
            won = int((found.gains > 0.0).sum())
            text = f"predicted without its own data, the first proposal beat the default on {won} of {len(found.gains)}"
            grounds += (text,)
        if found.is_floored:
            doubts += (
                "the default was ten times slower than the best somewhere, or failed: the speed-ups are at least so",
            )
        (default,) = self._values(np.array([0]))
        return Prediction(self.setting, self.space.default(), default, proposals, promising, grounds, doubts)

    def timed(self, times: RunTimes, top: int, grounds: tuple[str, ...], doubts: tuple[str, ...]) -> Prediction:
        """Return the prediction that follows from predicted times alone."""
        sign = -1.0 if self.setting.metric.direction == "maximize" else 1.0
        told = np.flatnonzero(self.differs_in(times.varied))
        cost = sign * times.estimate(DesignMatrix.candidates(self.space, self.rows[told], self.setting)).mean
        places = told[np.argsort(cost, kind="stable")[:top]]
        default_case = DesignMatrix.candidates(self.space, self.rows[:1], self.setting)
        ratio = times.ratio(DesignMatrix.candidates(self.space, self.rows[places], self.setting), default_case)
        gains = [
            Interval(exp(-sign * middle), exp(-sign * middle - wide), exp(-sign * middle + wide))
            for middle, wide in zip(ratio.mean.tolist(), ratio.half.tolist(), strict=True)
        ]
        proposals = tuple(
            Proposal(configuration, value, None if place == 0 else gain)
            for configuration, value, gain, place in zip(
                self.space.decode(self.rows[places]), self._values(places), gains, places.tolist(), strict=True
            )
        )
        doubts += times.doubts_of(DesignMatrix.candidates(self.space, self.rows[places], self.setting))
        first = proposals[0].speed_up
        (default,) = self._values(np.array([0]))
        promising = first is not None and first.low > 1.0 and not doubts
        best = DesignMatrix.candidates(self.space, self.rows[places[:1]], self.setting)
        why = times.explain(best, default_case)[:_REASONS]
        reasons = tuple((name, exp(-sign * part)) for name, part in why)
        return Prediction(self.setting, self.space.default(), default, proposals, promising, grounds, doubts, reasons)

    def differs_in(self, varied: frozenset[str]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which rows, (n,), are as the default but for parameters of which something is known."""
        others = [place for place, one in enumerate(self.space.parameters) if one.name not in varied]
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = (self.rows[:, others] == self.rows[0, others]).all(axis=1)
        return found

    def _values(self, places: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> list[Interval | None]:
        if self.times is None:
            return [None] * len(places)
        told = self.times.estimate(DesignMatrix.candidates(self.space, self.rows[places], self.setting))
        return [
            Interval(exp(middle), exp(middle - wide), exp(middle + wide))
            for middle, wide in zip(told.mean.tolist(), told.half.tolist(), strict=True)
        ]


def _varied(space: Space, found: Sequence[Source]) -> frozenset[str]:
    """Return the parameters that somebody measured with several values."""
    rows = np.concatenate([one.rows for one in found])
    several = (rows != rows[0]).any(axis=0)
    return frozenset(one.name for one, varied in zip(space.parameters, several, strict=True) if varied)


def _candidates(space: Space, found: Sequence[Source]) -> Indices:
    """Return the configurations that are looked at, (n, p), the default first."""
    default = space.indices([space.default()])
    if space.listable and space.size.value <= _LISTED:
        rows = space.all_indices()
    else:
        drawn = space.sample_indices(np.random.default_rng(0), _SAMPLED)
        rows = np.unique(np.concatenate([drawn, *(one.rows for one in found)]), axis=0)
    others: Indices = rows[(rows != default).any(axis=1)]
    return np.ascontiguousarray(np.concatenate([default, others]))
