"""One value for several metrics, by their weights: the augmented Chebyshev sum.

    max_i(w_i s_i) + 0.05 sum_i(w_i s_i),  s_i = (cost_i - least_i) / (greatest_i - least_i)

(Steuer & Choo, Mathematical Programming 26, 1983; with this factor Knowles, ParEGO, IEEE TEVC 10, 2006.) Unlike a
weighted sum, its least value can be any point of a front, also where that is not convex.
"""

import numpy as np
from numpy.typing import NDArray

_AUGMENTED = 0.05


def chebyshev(costs: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a value for each row of `costs`, (n, metrics), lower is better, with the metrics' `weights`."""
    spans = np.ptp(costs, axis=0)
    parts = weights * (costs - costs.min(axis=0)) / np.where(spans > 0.0, spans, 1.0)
    combined: NDArray[np.float64] = parts.max(axis=1) + _AUGMENTED * parts.sum(axis=1)
    return combined
