"""An estimate: logarithms of values that are expected, and how far they may be off."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import CONFIDENCE


def deviations_within(share: float) -> float:
    """Return within how many standard deviations of its mean a normal distribution has a `share` of its values."""
    return NormalDist().inv_cdf((1.0 + share) / 2.0)


@dataclass(frozen=True)
class Estimate:
    """Logarithms of values, (n,), and half the widths, (n,), of intervals that hold them in a `share` of cases.

    Where less than nine tenths are promised, since too few machines, builds or workloads are known, the width is what
    all of them needed.
    """

    mean: FloatArray
    half: FloatArray
    share: float = CONFIDENCE

    @property
    def deviations(self) -> FloatArray:
        """The standard deviations, (n,), of normal distributions that have the `share` within the intervals."""
        return self.half / deviations_within(self.share)

    @classmethod
    def join(cls, parts: Sequence["Estimate"], share: float) -> "Estimate":
        """Return estimates of several parts as one, whose intervals hold a `share` of values."""
        if not parts:
            return cls(np.zeros(0), np.zeros(0), share)
        return cls(np.concatenate([part.mean for part in parts]), np.concatenate([part.half for part in parts]), share)
