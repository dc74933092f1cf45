"""Estimates: expected logarithms of values, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import CONFIDENCE


def deviations_within(share: float) -> float:
    """Return the number of standard deviations around its mean that contain a `share` of a normal distribution."""
    return NormalDist().inv_cdf((1.0 + share) / 2.0)


@dataclass(frozen=True)
class Estimate:
    """Logarithms of values, (n,), and half-widths, (n,), of intervals that contain them in a `share` of cases.

    If too few machines, builds or workloads are known to promise 90 %, the width is the one that covers all of them.
    """

    mean: FloatArray
    half: FloatArray
    share: float = CONFIDENCE

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations, (n,), of normal distributions with the `share` inside the intervals."""
        return self.half / deviations_within(self.share)

    @classmethod
    def join(cls, parts: Sequence["Estimate"], share: float) -> "Estimate":
        """Join the estimates of several parts into one, whose intervals contain a `share` of values."""
        if not parts:
            return cls(np.zeros(0), np.zeros(0), share)
        return cls(np.concatenate([part.mean for part in parts]), np.concatenate([part.half for part in parts]), share)
