"""An estimate: logarithms of values that are expected, and how far they may be off."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import CONFIDENCE


@dataclass(frozen=True)
class Estimate:
    """Logarithms of values, (n,), and half the widths, (n,), of intervals that hold them in a `share` of cases.

    Where less than nine tenths are promised, since too few machines, builds or workloads are known, the width is what
    all of them needed.
    """

    mean: FloatArray
    half: FloatArray
    share: float = CONFIDENCE

    @classmethod
    def joined(cls, parts: Sequence["Estimate"], share: float) -> "Estimate":
        """Return estimates of several parts as one, whose intervals hold a `share` of values."""
        if not parts:
            return cls(np.zeros(0), np.zeros(0), share)
        return cls(np.concatenate([part.mean for part in parts]), np.concatenate([part.half for part in parts]), share)
