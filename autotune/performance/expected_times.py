"""Expected times: the predictions of a run-time model for the configurations of a space, which guide a search."""

from dataclasses import dataclass, field
from functools import cached_property
from math import exp

import numpy as np

from autotune.performance.regression.prediction import Interval
from autotune.performance.regression.table import DesignMatrix
from autotune.performance.run_times.model import RunTimes
from autotune.performance.validity import Validity
from autotune.records.measurement import Setting
from spaces import Space
from spaces.expressions.quantities import FloatArray
from spaces.valid_set.valid_set import Indices

# The penalty, as a logarithm, for changing a parameter that the model does not read: until the study has measured such
# a change itself, the best configurations should differ from the default only in parameters that the model knows.
_OF_UNREAD = 0.02
_DRAWN = 5_000


@dataclass(frozen=True, eq=False)
class ExpectedTimes:
    """The logarithms of expected values in a setting, relative to the best; lower is better for every metric."""

    space: Space
    setting: Setting
    times: RunTimes
    validity: Validity
    _known: dict[bytes, float] = field(default_factory=dict)

    def at(self, rows: Indices) -> FloatArray:
        """Return the logarithms, (n,), at value indexes (n, p); +inf for configurations that failed in the setting."""
        keys = [row.tobytes() for row in np.ascontiguousarray(rows)]
        new = [index for index, key in enumerate(keys) if key not in self._known]
        if new:
            # Remember predictions: a search evaluates the same configurations again and again.
            self._known.update(
                zip([keys[index] for index in new], self._expected_seconds(rows[new]).tolist(), strict=True)
            )
        return np.array([self._known[key] for key in keys])

    def gain(self, row: Indices) -> Interval:
        """Return the expected speed-up over the default at value indexes (1, p)."""
        default = self.space.indices([self.space.default()])
        ratio = self.times.ratio(
            DesignMatrix.candidates(self.space, row, self.setting),
            DesignMatrix.candidates(self.space, default, self.setting),
        )
        middle, wide = -self.setting.metric.cost(float(ratio.mean[0])), float(ratio.half[0])
        return Interval(exp(middle), exp(middle - wide), exp(middle + wide))

    def _expected_seconds(self, rows: Indices) -> FloatArray:
        expected = self._cost(rows) - self._best - np.log(self.validity.chances(rows))
        default = self.space.indices([self.space.default()])[0]
        changed = (rows != default)[:, [one.name not in self.times.varied for one in self.space.parameters]].sum(axis=1)
        is_unknown = np.isnan(expected)
        return np.where(self.validity.fails(rows) | is_unknown, np.inf, expected + _OF_UNREAD * changed)

    def _cost(self, rows: Indices) -> FloatArray:
        estimate = self.times.estimate(DesignMatrix.candidates(self.space, rows, self.setting))
        return np.array([self.setting.metric.cost(value) for value in estimate.mean.tolist()])

    @cached_property
    def _best(self) -> float:
        costs = self._cost(self.space.sample_indices(np.random.default_rng(0), _DRAWN))
        return float(np.min(costs, initial=np.inf, where=~np.isnan(costs)))
